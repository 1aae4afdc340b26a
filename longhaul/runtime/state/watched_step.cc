#include "longhaul/runtime/state/watched_step.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

StepWatch checked(StepWatch watch) {
  if (watch.step.valid() && watch.step.op().type() == "Identity") watch.step = watch.step.op().inputs()[0];
  const bool is_step = watch.step.valid() && watch.step.op().type() == "VariableV2" && watch.step.dtype() == kInt64;
  if (!is_step) {
    throw InvalidArgumentError(fmt::format(
        "the watched step must be an int64 variable, as created by ops::global_step(), not {}",
        watch.step.valid()
            ? fmt::format("{} ({}), {}", watch.step.name(), watch.step.op().type(), dtype_name(watch.step.dtype()))
            : "an empty Output"));
  }
  if (watch.every <= 0)
    throw InvalidArgumentError(fmt::format("the interval of watched steps must be above 0, not {}", watch.every));
  return watch;
}

}  // namespace

WatchedStep::WatchedStep(StepWatch watch, VariableStore& variables, const std::string& default_container)
    : watch_(checked(std::move(watch))),
      step_(variables.slot(resource_name(watch_.step.op(), default_container))),
      last_(now()) {}

int64_t WatchedStep::now() const {
  return step_->initialized() ? step_->read().tensor.item<int64_t>() : 0;
}

WatchedStep::Steps WatchedStep::advance() {
  const MutexLock lock(mutex_);
  const int64_t step = now();
  return {std::exchange(last_, step), step};
}

void WatchedStep::look() {
  const auto [before, step] = advance();
  if (step / watch_.every <= before / watch_.every) return;
  try {
    watch_.passed();
  } catch (const std::exception& error) {
    log_error("the callback at step {} failed: {}", step, error.what());
  }
}

}  // namespace longhaul
