#include "longhaul/cluster/tasks/doubtful_steps.h"

#include <algorithm>

#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/pause.h"

namespace longhaul {
namespace {

constexpr size_t kMostDoubts = 64;
constexpr Seconds kAskAgain{0.2};    // while the tasks find it out from each other
constexpr Seconds kRemembered{100};  // less than StepTable keeps what is over

bool is_another_process(const CallReply& reply) {
  return reply.error != nullptr && reply.incarnation != 0 && code_of(reply.error) == Code::kAborted;
}

}  // namespace

void DoubtfulSteps::add(int64_t step, std::vector<proto::Participant> committing) {
  MutexLock lock(mutex_);
  doubts_.push_back({step, std::move(committing), transport_.clock().now()});
  if (doubts_.size() > kMostDoubts) doubts_.pop_front();
}

StepFate DoubtfulSteps::find_fate(int64_t step, Seconds at_most) {
  const std::optional<Doubt> doubt = find(step);
  if (!doubt) return StepFate::kNotKnown;
  Clock& clock = transport_.clock();
  const Seconds end = clock.now() + at_most;
  while (true) {
    const StepFate fate = ask(*doubt, end);
    if (fate != StepFate::kNotKnown || clock.now() >= end) return fate;
    pause(clock, std::min(end, clock.now() + kAskAgain), nullptr);
  }
}

std::optional<DoubtfulSteps::Doubt> DoubtfulSteps::find(int64_t step) const {
  MutexLock lock(mutex_);
  const auto found =
      std::find_if(doubts_.begin(), doubts_.end(), [&](const Doubt& doubt) { return doubt.step == step; });
  return found != doubts_.end() ? std::optional(*found) : std::nullopt;
}

// Another process decides: all variables are set back with those that it has lost. Then one that has committed;
// otherwise all of them must have said that they have not.
StepFate DoubtfulSteps::ask(const Doubt& doubt, Seconds until) {
  CallGroup calls(transport_);
  proto::AskRequest request;
  request.set_step(doubt.step);
  for (const proto::Participant& task : doubt.committing)
    calls.start({.task = task.task(),
                 .method = methods::kAsk,
                 .incarnation = task.incarnation(),
                 .message = to_message(request)},
                until);
  bool has_committed = false, is_known = true;
  while (calls.under_way() > 0) {
    const auto ended = calls.next({.deadline = until});
    if (!ended) return has_committed ? StepFate::kCommitted : StepFate::kNotKnown;
    if (is_another_process(ended->reply)) return StepFate::kNotCommitted;
    const StepFate of_task = said(doubt, ended->reply);
    has_committed |= of_task == StepFate::kCommitted;
    is_known &= of_task != StepFate::kNotKnown;
  }
  if (has_committed) return StepFate::kCommitted;
  return is_known ? StepFate::kNotCommitted : StepFate::kNotKnown;
}

StepFate DoubtfulSteps::said(const Doubt& doubt, const CallReply& reply) const {
  if (reply.error != nullptr) return StepFate::kNotKnown;
  const proto::StepState state = header_of<proto::AskReply>(reply.message, "Ask").state();
  if (state == proto::STEP_COMMITTED) return StepFate::kCommitted;
  if (state == proto::STEP_ABORTED) return StepFate::kNotCommitted;
  const bool was_never_there = state == proto::STEP_UNKNOWN && transport_.clock().now() - doubt.since < kRemembered;
  return was_never_there ? StepFate::kNotCommitted : StepFate::kNotKnown;
}

}  // namespace longhaul
