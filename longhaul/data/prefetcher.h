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

// The work of a Prefetcher. Several threads call the functions concurrently.
struct PrefetchWork {
  // Returns whether there is a batch at `position`; if not, there are none beyond it. Called under a lock, so it must
  // only compute.
  std::function<bool(int64_t position)> exists;
  // Makes the batch at `position`. May throw; once `abandoned` is set, it may end early by throwing.
  std::function<Batch(int64_t position, const std::atomic<bool>& abandoned)> make;
  int64_t stride = 1;  // from one position to the next
};

// Makes batches ahead on its own threads, starting at the consumer's position:
//
//   idle --at(p)--> preparing p, p + stride, ... --at(elsewhere)--> preparing from there --stop--> stopped
//
// The threads start with the first at(). An at() for a position other than the next one discards the batches before it,
// or all batches.
class Prefetcher {
 public:
  // At most `ahead` batches are ready or being made. `num_threads` and `ahead` must be positive. `timeout` 0: none.
  Prefetcher(PrefetchWork work, int num_threads, int ahead, Seconds timeout);
  // Stops the threads, and waits for calls of `make` that are under way.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns the batch at `position`, which must exist. One thread at a time may call. Throws what `make` threw for that
  // batch; another call retries. CancelledError: stop() was called. DeadlineExceededError: it took longer than the
  // timeout.
  Batch at(int64_t position) EXCLUDES(mutex_);

  // Ends at(), and ends the threads when they next check `abandoned`. Any thread may call.
  void stop() EXCLUDES(mutex_);

 private:
  struct Slot {
    explicit Slot(int64_t its_position) : position(its_position) {}

    const int64_t position;
    std::atomic<bool> abandoned = false;
    bool ready = false;  // once true, the slot does not change; guarded by the prefetcher's mutex_
    Batch batch;
    std::exception_ptr error;
  };

  void start_threads();
  void prepare();
  std::shared_ptr<Slot> claim() EXCLUDES(mutex_);
  void fill(Slot& slot);
  bool go_to(int64_t position) EXCLUDES(mutex_);  // whether to wake all threads
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
