#include "longhaul/session/step_watches.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {

Output watched_variable(const StepWatch& watch) {
  Output step = watch.step;
  if (step.valid() && step.op().type() == "Identity") step = step.op().inputs()[0];
  const bool is_step = step.valid() && step.op().type() == "VariableV2" && step.dtype() == kInt64;
  if (!is_step) {
    throw InvalidArgumentError(
        fmt::format("the watched step must be an int64 variable, as created by ops::global_step(), not {}",
                    step.valid() ? fmt::format("{} ({}), {}", step.name(), step.op().type(), dtype_name(step.dtype()))
                                 : "an empty Output"));
  }
  if (watch.every <= 0)
    throw InvalidArgumentError(fmt::format("the interval of watched steps must be above 0, not {}", watch.every));
  return step;
}

class StepWatches::Watched {
 public:
  Watched(StepWatch watch, int64_t now) : watch_(std::move(watch)), last_(now) {}

  void look(const Read& read) EXCLUDES(mutex_) {
    const uint64_t number = begin();
    if (is_passed(number, read(watch_.step))) watch_.passed();
  }

 private:
  uint64_t begin() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return ++begun_;
  }

  // A read that began after this one and has ended before it has counted what this one has seen.
  bool is_passed(uint64_t number, int64_t step) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (number < newest_) return false;
    newest_ = number;
    const int64_t before = std::exchange(last_, step);
    return step / watch_.every > before / watch_.every;
  }

  const StepWatch watch_;
  Mutex mutex_;  // not held while the step is read, or passed() is called
  uint64_t begun_ GUARDED_BY(mutex_) = 0;
  uint64_t newest_ GUARDED_BY(mutex_) = 0;  // of the reads that have ended
  int64_t last_ GUARDED_BY(mutex_);
};

std::shared_ptr<const void> StepWatches::add(StepWatch watch, const Read& read) {
  watched_variable(watch);
  const int64_t now = read(watch.step);
  auto watched = std::make_shared<Watched>(std::move(watch), now);
  const MutexLock lock(mutex_);
  watched_.push_back(watched);
  has_some_.store(true);
  return watched;
}

std::vector<std::shared_ptr<StepWatches::Watched>> StepWatches::living() {
  std::vector<std::shared_ptr<Watched>> living;
  const MutexLock lock(mutex_);
  std::erase_if(watched_, [](const auto& watched) { return watched.expired(); });
  for (const auto& watched : watched_) {
    if (auto lives = watched.lock()) living.push_back(std::move(lives));
  }
  has_some_.store(!watched_.empty());
  return living;
}

void StepWatches::look(const Read& read) {
  for (const auto& watched : living()) {
    try {
      watched->look(read);
    } catch (const std::exception& error) {
      log_error("the step was made, but its watch failed: {}", error.what());
    }
  }
}

}  // namespace longhaul
