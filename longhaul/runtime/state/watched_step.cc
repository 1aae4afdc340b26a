#include "longhaul/runtime/state/watched_step.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/session/step_watches.h"

namespace longhaul {
namespace {

StepWatch of_variable(StepWatch watch) {
  watch.step = watched_variable(watch);
  return watch;
}

}  // namespace

WatchedStep::WatchedStep(StepWatch watch, VariableStore& variables, const std::string& default_container)
    : watch_(of_variable(std::move(watch))),
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
