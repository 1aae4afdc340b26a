#include "longhaul/cluster/transport/outgoing_call.h"

#include <fmt/format.h>

#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {

bool OutgoingCall::has_ended() const {
  MutexLock lock(mutex_);
  return has_ended_;
}

void OutgoingCall::cancel(const std::string& why) {
  give_up(std::make_exception_ptr(CancelledError(
      fmt::format("{} to {} was cancelled: {}", peer_.method, task_text(peer_.task, peer_.address), why))));
}

bool OutgoingCall::end(CallReply reply) {
  std::function<void()> tell;
  return finish(std::move(reply), tell);
}

bool OutgoingCall::finish(CallReply reply, std::function<void()>& tell) {
  Done done;
  {
    MutexLock lock(mutex_);
    if (has_ended_) return false;
    has_ended_ = true;
    done.swap(done_);
    tell.swap(tell_);
  }
  try {
    done(std::move(reply));
  } catch (const std::exception& error) {
    log_error("the callback of {} to {} has thrown: {}", peer_.method, peer_.task, error.what());
  }
  return true;
}

bool OutgoingCall::end(const proto::ReplyHeader& header, Message message) {
  CallReply reply{.message = std::move(message), .incarnation = header.incarnation()};
  if (peer_.incarnation != 0 && header.incarnation() != peer_.incarnation) {
    reply.error = wrong_incarnation(peer_.method, peer_.task, peer_.incarnation, header.incarnation());
  } else {
    reply.error = from_task(peer_.task, from_error_body(header.error()));
  }
  return end(std::move(reply));
}

bool OutgoingCall::give_up(std::exception_ptr error) {
  std::function<void()> tell;
  if (!finish(CallReply{.error = std::move(error)}, tell)) return false;
  if (tell) tell();
  return true;
}

bool OutgoingCall::give_up_late(Seconds now) {
  return give_up(std::make_exception_ptr(DeadlineExceededError(unanswered(now))));
}

bool OutgoingCall::break_off(Seconds now, const std::string& why) {
  return break_off_with(why.empty() ? unanswered(now) : fmt::format("{}: {}", unanswered(now), why));
}

bool OutgoingCall::connection_broke(const std::string& why) {
  const std::string text = fmt::format("the connection to {} broke", task_text(peer_.task, peer_.address));
  return break_off_with(why.empty() ? text : fmt::format("{}: {}", text, why));
}

bool OutgoingCall::break_off_with(const std::string& text) {
  return end(CallReply{.error = std::make_exception_ptr(UnavailableError(text)), .is_broken = true});
}

void OutgoingCall::on_give_up(std::function<void()> tell) {
  MutexLock lock(mutex_);
  if (!has_ended_) tell_ = std::move(tell);
}

std::string OutgoingCall::unanswered(Seconds now) const {
  return unanswered_text(peer_.task, peer_.address, peer_.method, now - peer_.began);
}

}  // namespace longhaul
