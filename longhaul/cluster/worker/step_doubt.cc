#include "longhaul/cluster/worker/step_doubt.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestAsk{5};

class StepDoubt : public std::enable_shared_from_this<StepDoubt> {
 public:
  StepDoubt(std::shared_ptr<StepLife> life, Transport& transport, Seconds until)
      : life_(std::move(life)), transport_(transport), until_(until) {
    for (const proto::Participant& participant : life_->call().participants) {
      if (participant.commits() && participant.incarnation() != transport.incarnation()) others_.push_back(participant);
    }
    silent_ = others_.size();
  }

  void begin() {
    if (others_.empty()) return life_->resolve(false, "its master has died before it committed the step");
    for (const proto::Participant& participant : others_) ask(participant);
  }

 private:
  void ask(const proto::Participant& participant) {
    proto::AskRequest request;
    request.set_step(life_->call().step);
    request.set_resolve(true);
    transport_.start({.task = participant.task(),
                      .method = methods::kAsk,
                      .incarnation = participant.incarnation(),
                      .time_left = std::min(kLongestAsk, until_ - transport_.clock().now()),
                      .message = to_message(request)},
                     [self = shared_from_this(), participant](CallReply reply) { self->answered(participant, reply); });
  }

  void answered(const proto::Participant& participant, const CallReply& reply) {
    if (!life_->is_in_doubt()) return;
    const Code code = code_of(reply.error);
    if (reply.error == nullptr) {
      said(participant, header_of<proto::AskReply>(reply.message, "Ask").state());
    } else if (reply.incarnation != 0 && (code == Code::kAborted || code == Code::kUnavailable)) {
      count_prepared();
    } else if ((reply.is_broken || code == Code::kDeadlineExceeded) && transport_.clock().now() < until_) {
      log_warning("step {} is in doubt, as its master on task {} has died: {}; asking again", life_->call().step,
                  life_->call().master.task, message_of(reply.error));
      ask(participant);
    }
  }

  void said(const proto::Participant& participant, proto::StepState state) {
    if (state == proto::STEP_PREPARED) return count_prepared();
    const bool is_committed = state == proto::STEP_COMMITTED;
    life_->resolve(is_committed,
                   fmt::format("step {} was {} on task {} when its master on task {} died", life_->call().step,
                               is_committed ? "committed" : "aborted", participant.task(), life_->call().master.task));
  }

  // Each is asked again only after a call that has failed, so each is counted once.
  void count_prepared() {
    {
      MutexLock lock(mutex_);
      if (--silent_ > 0) return;
    }
    life_->resolve(false, fmt::format("the master of step {} on task {} has died before it committed the step",
                                      life_->call().step, life_->call().master.task));
  }

  const std::shared_ptr<StepLife> life_;
  Transport& transport_;
  const Seconds until_;
  std::vector<proto::Participant> others_;
  Mutex mutex_;
  size_t silent_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

void ask_participants(std::shared_ptr<StepLife> life, Transport& transport, Seconds until) {
  std::make_shared<StepDoubt>(std::move(life), transport, until)->begin();
}

}  // namespace longhaul
