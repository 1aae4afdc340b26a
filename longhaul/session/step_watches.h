#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {

// The variable that a StepWatch watches. InvalidArgumentError: its step is not an int64 variable or a read of one, or
// `every` is not above 0.
Output watched_variable(const StepWatch& watch);

// How many runs that write variables are under way in a session, and have ended. Any thread.
class StepCount {
 public:
  class Run {
   public:
    Run(StepCount& count, bool writes) : count_(count), steps_(writes ? 1 : 0) { count_.under_way_ += steps_; }
    ~Run() {
      count_.under_way_ -= steps_;
      count_.ended_.fetch_add(static_cast<uint64_t>(steps_), std::memory_order_relaxed);
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    StepCount& count_;
    const int steps_;
  };

  bool is_under_way() const { return under_way_ > 0; }
  uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> under_way_{0};
  std::atomic<uint64_t> ended_{0};
};

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
