#include "longhaul/cluster/transport/incoming_call.h"

#include <fmt/format.h>

namespace longhaul {

IncomingCall::IncomingCall(std::string method, Caller caller, Seconds deadline, Message request, Respond respond)
    : method_(std::move(method)),
      caller_(std::move(caller)),
      deadline_(deadline),
      request_(std::move(request)),
      respond_(std::move(respond)) {}

IncomingCall::~IncomingCall() {
  fail(std::make_exception_ptr(
      InternalError(fmt::format("{} from {} was let go without a reply", method_, caller_.task))));
}

void IncomingCall::reply(Message message) {
  respond({.message = std::move(message)});
}

void IncomingCall::fail(std::exception_ptr error) {
  respond({.error = std::move(error)});
}

void IncomingCall::respond(CallReply reply) {
  Respond respond;
  std::function<void()> gone;
  {
    MutexLock lock(mutex_);
    respond.swap(respond_);
    gone.swap(gone_);  // destroyed without the lock
  }
  if (respond) respond(std::move(reply));
}

void IncomingCall::on_gone(std::function<void()> gone) {
  {
    MutexLock lock(mutex_);
    if (!has_gone_) {
      if (respond_) gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void IncomingCall::end_caller() {
  Respond respond;
  std::function<void()> gone;
  {
    MutexLock lock(mutex_);
    if (!respond_) return;
    has_gone_ = true;
    respond.swap(respond_);
    gone.swap(gone_);
  }
  respond({.error = std::make_exception_ptr(CancelledError("the caller has gone"))});
  if (gone) gone();
}

}  // namespace longhaul
