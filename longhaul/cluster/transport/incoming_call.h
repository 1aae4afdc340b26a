#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/cancellation.h"
#include "longhaul/cluster/transport/message.h"

namespace longhaul {

// A call from another task that waits for its reply. Whoever has it may keep it and reply later, from any thread; if it
// is let go without a reply, the caller gets InternalError. Any thread may call.
class IncomingCall {
 public:
  using Respond = std::function<void(CallReply)>;
  struct Caller {
    std::string task;
    uint64_t incarnation = 0;
  };

  IncomingCall(std::string method, Caller caller, Seconds deadline, Message request, Respond respond);
  ~IncomingCall();
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  const std::string& method() const { return method_; }
  const Caller& caller() const { return caller_; }
  const Message& request() const { return request_; }
  Message take_request() { return std::move(request_); }  // at most once, by the handler
  Seconds deadline() const { return deadline_; }          // the caller's, on this task's clock; 0: none

  // The first reply counts; later ones, and those to a caller that has gone, are dropped.
  void reply(Message message) EXCLUDES(mutex_);
  void fail(std::exception_ptr error) EXCLUDES(mutex_);

  // Calls `gone` once, without a lock, when the caller has cancelled the call, died, or is no longer to be reached; at
  // once if it already has; never after a reply. Hold no lock that it takes.
  void on_gone(std::function<void()> gone) EXCLUDES(mutex_);

  void end_caller() EXCLUDES(mutex_);  // for transports: the caller has gone

 private:
  void respond(CallReply reply) EXCLUDES(mutex_);

  const std::string method_;
  const Caller caller_;
  const Seconds deadline_;
  Message request_;
  Mutex mutex_;
  Respond respond_ GUARDED_BY(mutex_);  // empty: it has ended
  bool has_gone_ GUARDED_BY(mutex_) = false;
  std::function<void()> gone_ GUARDED_BY(mutex_);
};

using CallHandler = std::function<void(std::shared_ptr<IncomingCall>)>;

}  // namespace longhaul
