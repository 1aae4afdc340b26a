#include "longhaul/cluster/simulation/simulated_process.h"

#include "longhaul/cluster/simulation/network_router.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {

bool SimulatedCall::is_between(const std::string& one, const std::string& other) const {
  const std::string& from = caller_->task();
  return (from == one && to_ == other) || (from == other && to_ == one);
}

void SimulatedCall::set_arrived(std::shared_ptr<SimulatedProcess> callee,
                                const std::shared_ptr<IncomingCall>& incoming) {
  MutexLock lock(mutex_);
  callee_ = std::move(callee);
  if (incoming != nullptr) incoming_.push_back(incoming);
}

std::shared_ptr<SimulatedProcess> SimulatedCall::callee() const {
  MutexLock lock(mutex_);
  return callee_;
}

void SimulatedCall::break_off(Seconds now) {
  outgoing_->break_off(now);
  end_incoming();
}

void SimulatedCall::end_incoming() {
  std::vector<std::weak_ptr<IncomingCall>> incoming;
  {
    MutexLock lock(mutex_);
    incoming.swap(incoming_);
  }
  for (const auto& weak : incoming) {
    if (const auto call = weak.lock()) call->end_caller();
  }
}

SimulatedProcess::SimulatedProcess(std::string task, NetworkRouter& router)
    : Transport(std::move(task), new_incarnation(), router.clock()), router_(router) {}

std::string SimulatedProcess::address_of(const std::string& task) const {
  return router_.address_of(task);
}

void SimulatedProcess::send(std::shared_ptr<OutgoingCall> outgoing, proto::CallHeader header, Message message) {
  const std::string& to = outgoing->peer().task;
  const auto call = std::make_shared<SimulatedCall>(outgoing, shared_from_this(), router_.task_at(to));
  router_.add_call(call);
  // The two keep each other until the call has ended.
  outgoing->on_give_up([this, call] { router_.tell_given_up(call); });
  if (header.time_left_micros() > 0) {
    const Seconds left = std::chrono::duration<double, std::micro>(static_cast<double>(header.time_left_micros()));
    clock_of_router().at(clock().now() + left, [this, weak = std::weak_ptr<OutgoingCall>(outgoing)] {
      if (const auto kept = weak.lock()) kept->give_up_late(clock().now());
    });
  }
  const auto packet = std::make_shared<Packet>();
  packet->call = call;
  packet->sender = call->caller();
  packet->from = task();
  packet->to = call->to();
  packet->method = header.method();
  packet->call_header = std::move(header);
  packet->message = std::move(message);
  router_.transmit(packet);
}

void SimulatedProcess::wake_after(Seconds time, std::function<void()> wake) {
  clock_of_router().at(clock().now() + time, [self = shared_from_this(), wake = std::move(wake)] { wake(); });
}

SimulatedClock& SimulatedProcess::clock_of_router() const {
  return router_.clock();
}

void SimulatedProcess::receive_call(const std::shared_ptr<Packet>& packet) {
  const std::shared_ptr<SimulatedCall> call = packet->call;
  const auto incoming =
      server().dispatch(packet->call_header, packet->message,
                        [self = shared_from_this(), call](CallReply reply) { self->reply_to(call, std::move(reply)); });
  call->set_arrived(shared_from_this(), incoming);
  if (call->outgoing().has_ended()) call->end_incoming();
}

void SimulatedProcess::reply_to(const std::shared_ptr<SimulatedCall>& call, CallReply reply) {
  const auto packet = std::make_shared<Packet>();
  packet->call = call;
  packet->sender = shared_from_this();
  packet->from = task();
  packet->to = call->caller()->task();
  packet->method = call->outgoing().peer().method;
  packet->is_reply = true;
  packet->reply_header.set_incarnation(reply.incarnation);
  if (reply.error != nullptr) *packet->reply_header.mutable_error() = to_error_body(reply.error);
  packet->message = std::move(reply.message);
  router_.transmit(packet);
}

}  // namespace longhaul
