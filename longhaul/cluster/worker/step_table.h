#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "longhaul/cluster/worker/step_life.h"

namespace longhaul {

// The steps that a task knows: those under way, those whose results are kept until their masters have cleaned up, and
// of others what became of them. A step is known by its number and its master. Any thread may call.
class StepTable {
 public:
  struct Options {
    uint64_t most_result_bytes = uint64_t{256} << 20;  // of steps that are over; the oldest are let go
    size_t most_over = 10'000;                         // steps that are over and not cleaned up
    size_t most_remembered = 100'000;                  // of which only the outcome is known
  };
  struct Begun {
    std::shared_ptr<StepLife> life;
    bool is_new = false;
  };

  explicit StepTable(Options options) : options_(options) {}

  // The step of that call, made by the first one. AbortedError: it is over and cleaned up, was aborted before it came,
  // or is another master's.
  Begun begin(StepLife::Call call) EXCLUDES(mutex_);

  // Null: it is not there (any more). AbortedError: it is another master's.
  std::shared_ptr<StepLife> find(int64_t step, const IncomingCall::Caller& master) const EXCLUDES(mutex_);
  std::shared_ptr<StepLife> find(int64_t step) const EXCLUDES(mutex_);  // whoever asks
  // Of one that is not there; STEP_UNKNOWN: not remembered either.
  proto::StepState remembered(int64_t step) const EXCLUDES(mutex_);

  // The step has not come, and when it does it is aborted. Returns the step if it has come after all.
  std::shared_ptr<StepLife> bury(int64_t step) EXCLUDES(mutex_);
  // The step is over: it is kept within the bounds, until it may be forgotten.
  void keep(const std::shared_ptr<StepLife>& life) EXCLUDES(mutex_);
  // Only its outcome is remembered, once it is over. `orphan_until`: its master has died, so other participants may
  // still have to find out that it was committed; 0: it has not.
  void forget_when_over(int64_t step, Seconds orphan_until = Seconds{0}) EXCLUDES(mutex_);
  // The steps of several tasks that were committed here, and forgotten because their masters have died, until then.
  std::vector<int64_t> committed_orphans(Seconds now) EXCLUDES(mutex_);

  std::vector<std::shared_ptr<StepLife>> of_session(const std::string& session) const EXCLUDES(mutex_);
  std::vector<std::shared_ptr<StepLife>> all() const EXCLUDES(mutex_);

 private:
  struct Kept {
    std::shared_ptr<StepLife> life;
    uint64_t bytes = 0;
  };

  using Steps = std::unordered_map<int64_t, std::shared_ptr<StepLife>>;

  void remember(int64_t step, proto::StepState state) REQUIRES(mutex_);
  // Returns what is to be destroyed without the lock.
  std::shared_ptr<StepLife> forget(Steps::iterator step, Seconds orphan_until) REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  Steps steps_ GUARDED_BY(mutex_);
  std::unordered_map<int64_t, Seconds> to_forget_ GUARDED_BY(mutex_);  // of steps_: once they are over
  std::deque<Kept> kept_ GUARDED_BY(mutex_);                           // steps that are over, the oldest first
  uint64_t kept_bytes_ GUARDED_BY(mutex_) = 0;
  std::deque<std::pair<Seconds, int64_t>> orphans_ GUARDED_BY(mutex_);  // in the order of time
  std::unordered_map<int64_t, proto::StepState> remembered_ GUARDED_BY(mutex_);
  std::deque<int64_t> in_order_ GUARDED_BY(mutex_);  // of remembered_
};

}  // namespace longhaul
