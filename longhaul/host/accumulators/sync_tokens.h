#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/host/queues/queue.h"
#include "longhaul/host/resource.h"

namespace longhaul {

// Who holds the tokens of synchronous replicas (SyncReplicasOptimizer), whose queue has only the free ones. A token is
// a step, and the right to push gradients for it.
//
//   renew(step, n)  the chief begins: the tokens of a chief before are void, n new ones are put
//   join()          a replica's session begins; with await_chief() before and follow() after it, unless it is the
//                   chief's
//   take()          it has pushed, and waits for its next token
//   put(step, n)    the chief has made a step: tokens that were not taken for an earlier step are void
//
// So no token is lost and none is left over:
// - A session that ends, or is lost, gives back the token that it holds, if its step is not over: another replica then
//   pushes in its place.
// - A run that took a token and was not committed has not moved the replica's local step: its next run gets the same
//   token.
// - A replica that lives longer than its chief gets a token of the next chief's at once if the step of its
//   gradients was undone: they are dropped, and nobody else would give it one.
// - After a restart of the task that has the tokens no replica pushes before the next chief has begun, who has then set
//   all accumulators: one that still stood at an undone step would drop its gradient, and nobody give it a token. The
//   same after a restart of another task if the model was set back: there an accumulator is new, and would count the
//   gradient that those of the living tasks drop.
//
// A replica makes one run at a time. Two that wait at once, on two threads of one session, share its local step and its
// token, so that a gradient may count twice: a warning says so, once for each session. Threads need a replica each:
// apply_gradients() once for each, or a session.
//
// Any thread may call. All waits end as those of a Queue.
class SyncTokens final : public Resource {
 public:
  // A replica in one session. Without a session nobody knows when it is lost, and none of the above holds.
  struct Replica {
    std::shared_ptr<Cancellation> session;
    std::string holder;  // unique in the session
    std::string worker;  // in the log
  };
  struct Wait {
    WaitLimits limits;       // of the run, on the machine's clock
    Clock* clock = nullptr;  // of `warn_secs`; nullptr: the machine's
    Seconds warn_secs{60};   // after that long, and then after pauses that double, a warning
  };

  // The queue's elements are scalars, int32 or int64.
  explicit SyncTokens(std::shared_ptr<Queue> queue);

  void renew(const Cancellation* chief, int64_t step, int64_t count) EXCLUDES(mutex_);
  void join(const Replica& replica) EXCLUDES(mutex_);
  // Returns once a chief has begun since this task's process started. DeadlineExceededError, CancelledError,
  // AbortedError: the run's time is over, or it has ended.
  void await_chief(const Replica& replica, const Wait& wait) EXCLUDES(mutex_);
  // `step`: the model's, read after join(). Returns at once unless that is before the step of the tokens, so that the
  // model was set back; then once the next chief has begun. Errors as above.
  void follow(const Replica& replica, int64_t step, const Wait& wait) EXCLUDES(mutex_);
  int64_t take(const Replica& replica, int64_t local_step, const Wait& wait) EXCLUDES(mutex_);
  // CancelledError: the queue is closed.
  void put(int64_t step, int64_t count) EXCLUDES(mutex_);

  size_t holders() const EXCLUDES(mutex_);  // sessions that have not ended, as far as is known

 private:
  struct Holder {
    std::shared_ptr<Cancellation> session;
    int64_t chiefs = 0;                   // how many there had been when it last got a token, or joined
    std::optional<int64_t> joined_at{};   // the tokens' step then
    std::optional<int64_t> token{};       // it may push for that step
    std::optional<int64_t> waits_from{};  // its local step, while it waits
    bool has_ended = false, gave_back = false, is_shared = false;
    std::string worker{};
    std::unique_ptr<Cancellation::Watch> end{};
  };
  using Key = std::pair<const Cancellation*, std::string>;
  class Waiting;

  std::shared_ptr<Holder> holder_of(const Replica& replica) EXCLUDES(mutex_);
  std::vector<std::shared_ptr<Holder>> take_ended() REQUIRES(mutex_);
  void await_chief_after(int64_t chiefs, const Replica& replica, const Wait& wait, const std::string& why)
      EXCLUDES(mutex_);
  bool has_chief_by(int64_t after, const WaitLimits& slice, const bool& is_cancelled) EXCLUDES(mutex_);
  bool begins_to_share(Holder& holder) EXCLUDES(mutex_);
  std::optional<int64_t> begin_take(Holder& holder, int64_t local_step) EXCLUDES(mutex_);
  int64_t wait_for_token(const Replica& replica, int64_t local_step, const Wait& wait) EXCLUDES(mutex_);
  std::string why_none() const EXCLUDES(mutex_);
  void end(Holder& holder) EXCLUDES(mutex_);
  std::vector<int64_t> drain() REQUIRES(mutex_);
  bool add(int64_t step) REQUIRES(mutex_);

  const std::shared_ptr<Queue> queue_;
  mutable Mutex mutex_;
  CondVar begun_;                                   // a chief has, or a wait for one is cancelled
  int64_t chiefs_ GUARDED_BY(mutex_) = 0;           // that have begun
  int64_t undone_by_ GUARDED_BY(mutex_) = 0;        // the last of them that set the step back
  int64_t first_step_ GUARDED_BY(mutex_) = 0;       // with which the last of them began
  std::optional<int64_t> step_ GUARDED_BY(mutex_);  // of the last tokens that were put
  bool has_made_steps_ GUARDED_BY(mutex_) = false;  // the last chief
  std::map<Key, std::shared_ptr<Holder>> holders_ GUARDED_BY(mutex_);
};

// That of the queue, in the same resources.
std::shared_ptr<SyncTokens> sync_tokens(ResourceMap& resources, const std::shared_ptr<Queue>& queue);

}  // namespace longhaul
