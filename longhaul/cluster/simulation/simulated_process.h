#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

class NetworkRouter;
class SimulatedClock;
class SimulatedProcess;

// A call on the simulated network, and what both sides have of it. Any thread may call.
class SimulatedCall {
 public:
  SimulatedCall(std::shared_ptr<OutgoingCall> outgoing, std::shared_ptr<SimulatedProcess> caller, std::string to)
      : outgoing_(std::move(outgoing)), caller_(std::move(caller)), to_(std::move(to)) {}

  OutgoingCall& outgoing() { return *outgoing_; }
  const std::shared_ptr<SimulatedProcess>& caller() const { return caller_; }
  const std::string& to() const { return to_; }
  bool is_between(const std::string& one, const std::string& other) const;

  // It has arrived there, perhaps once more; `incoming` is null if it was refused.
  void set_arrived(std::shared_ptr<SimulatedProcess> callee, const std::shared_ptr<IncomingCall>& incoming)
      EXCLUDES(mutex_);
  std::shared_ptr<SimulatedProcess> callee() const EXCLUDES(mutex_);

  void lose_reply() { loses_reply_ = true; }
  bool loses_reply() const { return loses_reply_; }

  void break_off(Seconds now);  // for both sides
  void end_incoming() EXCLUDES(mutex_);

 private:
  const std::shared_ptr<OutgoingCall> outgoing_;
  const std::shared_ptr<SimulatedProcess> caller_;
  const std::string to_;
  std::atomic<bool> loses_reply_ = false;
  mutable Mutex mutex_;
  std::shared_ptr<SimulatedProcess> callee_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<IncomingCall>> incoming_ GUARDED_BY(mutex_);  // two if it was doubled
};

// A message on its way.
struct Packet {
  std::shared_ptr<SimulatedCall> call;
  std::shared_ptr<SimulatedProcess> sender;
  std::string from, to, method;
  bool is_reply = false;
  proto::CallHeader call_header;
  proto::ReplyHeader reply_header;
  Message message;
  bool has_limit = false;                 // it has waited for a line or a task
  std::optional<Seconds> kills_receiver;  // after it, for that long
};

// A task's process on the simulated network. The router outlives it.
class SimulatedProcess : public Transport, public std::enable_shared_from_this<SimulatedProcess> {
 public:
  SimulatedProcess(std::string task, NetworkRouter& router);

  std::string address_of(const std::string& task) const override;

  bool is_alive() const { return is_alive_; }
  bool die() { return is_alive_.exchange(false); }  // false: it was dead
  void receive_call(const std::shared_ptr<Packet>& packet);

 protected:
  void send(std::shared_ptr<OutgoingCall> call, proto::CallHeader header, Message message) override;
  void wake_after(Seconds time, std::function<void()> wake) override;

 private:
  void reply_to(const std::shared_ptr<SimulatedCall>& call, CallReply reply);
  SimulatedClock& clock_of_router() const;

  NetworkRouter& router_;
  std::atomic<bool> is_alive_ = true;
};

}  // namespace longhaul
