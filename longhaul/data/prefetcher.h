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

// The work of a Prefetcher. Several threads call the functions at once.
struct PrefetchWork {
  // false: there is no batch there, nor any further on. Called under a lock: it must only compute.
  std::function<bool(int64_t position)> exists;
  // May throw; once `abandoned` is set, it may end early by throwing.
  std::function<Batch(int64_t position, const std::atomic<bool>& abandoned)> make;
  int64_t stride = 1;  // from one position to the next
};

// Batches made ahead by its own threads, starting at the consumer's position:
//
//   idle --at(p)--> preparing p, p + stride, ... --at(elsewhere)--> preparing from there --stop--> stopped
//
// The threads start with the first at(). A position that is not the next one discards the batches before it, or all.
class Prefetcher {
 public:
  // At most `ahead` batches are ready or being made; both numbers are positive. timeout: 0 for none.
  Prefetcher(PrefetchWork work, int num_threads, int ahead, Seconds timeout);
  // Stops, and waits for the calls of `make` under way.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The batch at `position`, which must exist. One thread at a time. Throws what `make` threw for it; calling it again
  // retries. CancelledError: stop() was called. DeadlineExceededError: it took longer than the timeout.
  Batch at(int64_t position) EXCLUDES(mutex_);

  // Ends at(), and the threads once they next check `abandoned`. Any thread.
  void stop() EXCLUDES(mutex_);

 private:
  struct Slot {
    explicit Slot(int64_t its_position) : position(its_position) {}

    const int64_t position;
    std::atomic<bool> abandoned = false;
    bool ready = false;  // and no longer changes; guarded by the prefetcher's mutex_
    Batch batch;
    std::exception_ptr error;
  };

  void start_threads();
  void prepare();
  std::shared_ptr<Slot> claim() EXCLUDES(mutex_);
  void fill(Slot& slot);
  bool go_to(int64_t position) EXCLUDES(mutex_);  // whether all threads are to look
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
  std::optional<int64_t> next_ GUARDED_BY(mutex_);              // the position after the last slot

  std::vector<NamedThread> threads_;  // used by the consumer only
};

}  // namespace longhaul
