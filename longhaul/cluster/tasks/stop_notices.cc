#include "longhaul/cluster/tasks/stop_notices.h"

#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {

std::shared_ptr<StopNotices> StopNotices::create(const std::shared_ptr<SessionTasks>& tasks,
                                                 std::function<void(const StopNotice&)> noticed) {
  auto notices = std::make_shared<StopNotices>(tasks, std::move(noticed));
  notices->told_of_use_ = tasks->on_use([weak = std::weak_ptr(notices)](const std::string& task) {
    if (const auto self = weak.lock()) self->begin(task);
  });
  return notices;
}

StopNotices::~StopNotices() {
  std::map<std::string, std::shared_ptr<OutgoingCall>> calls;
  {
    MutexLock lock(mutex_);
    calls.swap(calls_);
  }
  for (const auto& [task, call] : calls) {
    if (call != nullptr) call->cancel("nobody waits for it");
  }
}

// A task that begins to be used meanwhile may be told of twice.
void StopNotices::begin(const std::string& task) {
  {
    MutexLock lock(mutex_);
    if (!calls_.emplace(task, nullptr).second) return;
  }
  ask(task, 1);
}

void StopNotices::ask(const std::string& task, int attempt) {
  const auto done = [weak = weak_from_this(), task, attempt](const CallReply& reply) {
    if (const auto self = weak.lock()) self->answered(task, attempt, reply);
  };
  CallRequest request = tasks_->request_to(task, methods::kWaitForStop, to_message(proto::WaitForStopRequest()));
  request.pause = pause_before(attempt);
  auto call = tasks_->transport().start(std::move(request), done);
  MutexLock lock(mutex_);
  calls_[task] = std::move(call);
}

// A line that stays broken takes the session with it.
void StopNotices::answered(const std::string& task, int attempt, const CallReply& reply) {
  constexpr int kMostAttempts = 20;
  if (reply.error != nullptr) {
    if (reply.is_broken && attempt < kMostAttempts && !tasks_->cancellation().cancelled()) ask(task, attempt + 1);
    return;
  }
  const Seconds grace{header_of<proto::WaitForStopReply>(reply.message, "WaitForStop").grace_secs()};
  log_warning("task {} stops in {:.3g} s, and what it has of the model goes with it", task, grace.count());
  noticed_({.task = task, .grace = grace});
}

}  // namespace longhaul
