#pragma once

#include <map>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/cluster/transport/incoming_call.h"
#include "longhaul/cluster/transport/open_calls.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {

// The calls that a task answers: finds the handler of each, and keeps those that wait for a reply. For transports. Any
// thread may call.
class CallServer {
 public:
  CallServer(std::string task, uint64_t incarnation, Clock& clock);

  void serve(const std::string& method, CallHandler handler) EXCLUDES(mutex_);

  // Calls the method's handler on this thread. `respond` is called once; the reply's errors are those of the handler,
  // or
  //   - AbortedError: another process of the task is meant
  //   - UnimplementedError: no handler, InvalidArgumentError: another task is meant
  //   - UnavailableError: it was stopped
  // Returns the call, whose caller may go; null if it was refused.
  std::shared_ptr<IncomingCall> dispatch(const proto::CallHeader& header, Message request,
                                         IncomingCall::Respond respond) EXCLUDES(mutex_);

  // Ends the calls that wait, and all later ones, with UnavailableError.
  void stop(const std::string& why) EXCLUDES(mutex_);

  size_t open_calls() const { return calls_->size(); }

 private:
  CallHandler find(const proto::CallHeader& header) const EXCLUDES(mutex_);  // throws what refuses the call
  std::shared_ptr<IncomingCall> open(const proto::CallHeader& header, Message request, IncomingCall::Respond respond);
  std::exception_ptr stopped_error(const std::string& method) const EXCLUDES(mutex_);  // null: it was not

  const std::string task_;
  const uint64_t incarnation_;
  Clock& clock_;
  // Shared with the calls, which may end later than this.
  const std::shared_ptr<OpenCalls<IncomingCall>> calls_ = std::make_shared<OpenCalls<IncomingCall>>();
  mutable Mutex mutex_;
  std::map<std::string, CallHandler> handlers_ GUARDED_BY(mutex_);
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  std::string why_stopped_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
