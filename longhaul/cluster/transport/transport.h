#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/cluster/transport/call_server.h"
#include "longhaul/cluster/transport/incoming_call.h"
#include "longhaul/cluster/transport/message.h"
#include "longhaul/cluster/transport/open_calls.h"
#include "longhaul/cluster/transport/outgoing_call.h"

namespace longhaul {

// Whether a task is called by its address, "10.0.0.3:2222", in place of its name: by who does not know its name, or
// knows it by another one than it does itself.
bool is_address(const std::string& task);

// What a task, one process, sends to the others of its cluster and answers to them. What carries the messages derives
// from it: a simulated network (cluster/simulation), gRPC.
//
//   transport.serve(methods::kAsk, [](std::shared_ptr<IncomingCall> call) { call->reply(...); });
//   transport.start({.task = "/job:ps/replica:0/task:0", .method = methods::kAsk, .message = ...},
//                   [](CallReply reply) { ... });
//
// What it promises, whatever carries the messages:
//   - A call waits for the connection. It ends with UnavailableError if the peer cannot be reached for
//     TransportLimits::connect, or if a connection on which it was sent breaks: then nobody knows whether the peer has
//     handled it. The transport itself never repeats a call; whoever does makes a pause (CallRequest::pause).
//   - A parked call, one that is answered later or never, ends soon after its peer's death: see TransportLimits.
//   - A task may be called by its address in place of its name (is_address). Whoever listens there takes the call.
//   - A call may reach the peer later than one that was started after it.
//
// Handlers and callbacks run on the transport's threads, several at once, and may not wait: they hand over. Any thread
// may call.
class Transport {
 public:
  virtual ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  const std::string& task() const { return task_; }
  uint64_t incarnation() const { return incarnation_; }  // of this process
  Clock& clock() const { return clock_; }
  // "10.0.0.3:2222"; empty: not known. Of an address: itself.
  virtual std::string address_of(const std::string& task) const = 0;

  // Before the first call arrives: the method's calls go to `handler`, which replies then or later.
  void serve(const std::string& method, CallHandler handler) { server_.serve(method, std::move(handler)); }

  // Begins a call. `done` is called once, with the reply or an error, on a thread of the transport or inside start(),
  // OutgoingCall::cancel() or stop(): hold no lock that it takes. The returned handle may be dropped.
  std::shared_ptr<OutgoingCall> start(CallRequest request, OutgoingCall::Done done);

  // Ends all calls, in both directions, with UnavailableError, and every later one.
  void stop(const std::string& why);

  struct Open {
    size_t outgoing = 0;
    size_t incoming = 0;
    bool operator==(const Open&) const = default;
  };
  Open open_calls() const { return {outgoing_->size(), server_.open_calls()}; }

 protected:
  Transport(std::string task, uint64_t incarnation, Clock& clock);

  // Sends the request, keeps `call` until it has ended, and ends it in one of its ways: by the deadline, if there is
  // one.
  virtual void send(std::shared_ptr<OutgoingCall> call, proto::CallHeader header, Message message) = 0;
  // Calls `wake` after that time, on a thread of the transport; not once the transport is destroyed.
  virtual void wake_after(Seconds time, std::function<void()> wake) = 0;
  // A part of stop(), which calls it once, without a lock: ends what a transport has besides the calls between tasks.
  virtual void end_others(const std::string& why);
  CallServer& server() { return server_; }
  std::vector<std::shared_ptr<OutgoingCall>> outgoing() const { return outgoing_->all(); }

 private:
  std::shared_ptr<OutgoingCall> open(const CallRequest& request, OutgoingCall::Done done);
  void send_after_pause(std::shared_ptr<OutgoingCall> call, CallRequest request);
  proto::CallHeader header_of_call(const CallRequest& request) const;
  std::exception_ptr stopped_error(const std::string& method) const EXCLUDES(mutex_);  // null: it was not

  const std::string task_;
  const uint64_t incarnation_;
  Clock& clock_;
  CallServer server_;
  // Shared with the calls, which may end later than this.
  const std::shared_ptr<OpenCalls<OutgoingCall>> outgoing_ = std::make_shared<OpenCalls<OutgoingCall>>();
  mutable Mutex mutex_;
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  std::string why_stopped_ GUARDED_BY(mutex_);
};

// How long a transport waits for a peer.
struct TransportLimits {
  // A peer is asked whether it lives when nothing has come from it for this time.
  static constexpr Seconds kAskAfter{1};

  Seconds connect{10};  // for a connection
  Seconds death{0.1};   // until a call notices that the peer's process has ended
  // For the answer of a peer that is asked whether it lives. One that is stopped or stalled for less than this loses
  // nothing.
  Seconds lost_line{2.4};

  // The longest time until a call notices that the line is cut, in one direction or both.
  Seconds longest_cut() const { return lost_line + kAskAfter; }
};

}  // namespace longhaul
