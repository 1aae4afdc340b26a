#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/base/thread.h"
#include "longhaul/data/dataset.h"

namespace longhaul {

// What a Prefetcher prepares. The functions are called by several threads at once.
struct PrefetchWork {
  // false: no batch there, nor further on. Called under a lock: it only computes.
  std::function<bool(int64_t position)> exists;
  // It may throw, and end early by that once `abandoned` is set.
  std::function<Batch(int64_t position, const std::atomic<bool>& abandoned)> make;
  int64_t stride = 1;  // from one position to the next
};

// Batches made ahead by threads of its own, from wherever the consumer is:
//
//   idle --at(p)--> preparing p, p + stride, ... --at(elsewhere)--> preparing from there --stop--> stopped
//
// The threads start with the first at(). A position that is not the next one throws away what lies before it, or all.
class Prefetcher {
 public:
  // At most `ahead` batches are ready or being made; both numbers are positive. timeout: 0 for none.
  Prefetcher(PrefetchWork work, int num_threads, int ahead, Seconds timeout);
  // Stops, and waits for the calls of `make` under way.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The batch at `position`, which exists. One thread at a time. Throws what `make` threw for it; asking again tries
  // again. CancelledError: stop() was called. DeadlineExceededError: it took longer than the timeout.
  Batch at(int64_t position) EXCLUDES(mutex_);

  // Ends at(), and the threads after their next look at `abandoned`. Any thread.
  void stop() EXCLUDES(mutex_);

 private:
  struct Slot {
    explicit Slot(int64_t position) : position(position) {}

    const int64_t position;
    std::atomic<bool> abandoned = false;
    bool ready = false;  // and no longer changed; guarded by the prefetcher's mutex_
    Batch batch;
    std::exception_ptr error;
  };

  void start_threads();
  void prepare();
  std::shared_ptr<Slot> claim() EXCLUDES(mutex_);
  void fill(Slot& slot);
  bool go_to(int64_t position) EXCLUDES(mutex_);  // whether there is more to do for the threads
  void drop_first() REQUIRES(mutex_);
  std::shared_ptr<Slot> take_first() EXCLUDES(mutex_);

  const PrefetchWork work_;
  const int num_threads_;
  const size_t ahead_;
  const Seconds timeout_;

  Mutex mutex_;
  CondVar changed_;  // for the consumer: a slot is ready
  CondVar space_;    // for the threads: there is something to do
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<Slot>> slots_ GUARDED_BY(mutex_);  // in the order of positions, without gaps
  std::optional<int64_t> next_ GUARDED_BY(mutex_);              // the position behind the last slot

  std::vector<NamedThread> threads_;  // the consumer's
};

}  // namespace longhaul
