#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {

// The variable that a StepWatch watches. InvalidArgumentError: its step is not an int64 variable or a read of one, or
// `every` is not above 0.
Output watched_variable(const StepWatch& watch);

// The watches of a session that learns the step by a run. Whoever passes a mark is found even if the reads of two
// threads overtake each other. Any thread.
class StepWatches {
 public:
  // The step at the moment; 0: it has no value. May take a while, and throw.
  using Read = std::function<int64_t(const Output& step)>;

  // InvalidArgumentError: as watched_variable(). Also throws what `read` throws.
  std::shared_ptr<const void> add(StepWatch watch, const Read& read) EXCLUDES(mutex_);
  bool is_empty() const { return !has_some_.load(std::memory_order_relaxed); }
  // After each run that has written variables. What reads and callbacks throw is logged.
  void look(const Read& read) EXCLUDES(mutex_);

 private:
  class Watched;
  std::vector<std::shared_ptr<Watched>> living() EXCLUDES(mutex_);

  std::atomic<bool> has_some_{false};
  Mutex mutex_;
  std::vector<std::weak_ptr<Watched>> watched_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
