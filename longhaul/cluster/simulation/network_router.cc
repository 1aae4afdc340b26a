#include "longhaul/cluster/simulation/network_router.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/cluster/transport/task_frame.h"

namespace longhaul {
namespace {

// As a real network would carry it.
void pass_through_bytes(Packet& packet) {
  TaskFrame frame;
  if (packet.is_reply) {
    frame.reply = packet.reply_header;
  } else {
    frame.call = packet.call_header;
  }
  frame.message = std::move(packet.message);
  frame = read_frame(write_frame(frame), packet.from);
  if (frame.call) packet.call_header = *frame.call;
  if (frame.reply) packet.reply_header = *frame.reply;
  packet.message = std::move(frame.message);
}

bool fits(const MessageKind& kind, const SimulatedNetwork::Sent& sent) {
  const auto is = [](const std::string& wanted, const std::string& name) { return wanted.empty() || wanted == name; };
  return kind.is_reply == sent.is_reply && is(kind.from, sent.from) && is(kind.to, sent.to) &&
         is(kind.method, sent.method);
}

}  // namespace

std::string NetworkRouter::address_of(const std::string& task) const {
  if (is_address(task)) return task;
  MutexLock lock(mutex_);
  const auto found = addresses_.find(task);
  return found == addresses_.end() ? "" : found->second;
}

std::string NetworkRouter::task_at(const std::string& called) const {
  if (!is_address(called)) return called;
  MutexLock lock(mutex_);
  for (const auto& [task, address] : addresses_) {
    if (address == called) return task;
  }
  return called;
}

void NetworkRouter::add(const std::shared_ptr<SimulatedProcess>& process) {
  {
    MutexLock lock(mutex_);
    addresses_.emplace(process->task(), fmt::format("10.0.0.{}:2222", addresses_.size() + 1));
    processes_.push_back(process);
  }
  retry_waiting();
}

std::shared_ptr<SimulatedProcess> NetworkRouter::living(const std::string& task) const {
  MutexLock lock(mutex_);
  for (const auto& process : processes_) {
    if (process->task() == task && process->is_alive()) return process;
  }
  return nullptr;
}

std::vector<std::shared_ptr<SimulatedProcess>> NetworkRouter::processes() const {
  MutexLock lock(mutex_);
  return processes_;
}

// The rest of the process ends in an event: the caller may be a thread of it, with locks.
void NetworkRouter::kill(const std::string& task) {
  const auto process = living(task);
  if (process == nullptr || !process->die()) return;
  clock_.soon([this, process] {
    process->stop("its process was killed");
    Told killed;
    {
      MutexLock lock(mutex_);
      killed = killed_;
    }
    if (killed) killed(process->task());
  });
  clock_.at(clock_.now() + options_.limits.death, [this, process] {
    for (const auto& call : open_calls()) {
      if (call->callee() == process) call->break_off(clock_.now());
      if (call->caller() == process) call->end_incoming();
    }
  });
}

void NetworkRouter::tell(Told killed, Told restart) {
  MutexLock lock(mutex_);
  if (killed) killed_ = std::move(killed);
  if (restart) restart_ = std::move(restart);
}

void NetworkRouter::cut(const std::string& from, const std::string& to) {
  {
    MutexLock lock(mutex_);
    if (!cuts_.emplace(Line{from, to}, last_cut_ + 1).second) return;
    ++last_cut_;
  }
  for (const auto& call : open_calls()) {
    if (call->is_between(from, to)) break_if_silent(call);
  }
}

void NetworkRouter::mend(const std::string& from, const std::string& to) {
  {
    MutexLock lock(mutex_);
    cuts_.erase({from, to});
  }
  retry_waiting();
}

void NetworkRouter::plan(const NetworkFault& fault) {
  MutexLock lock(mutex_);
  faults_.push_back({.fault = fault});
}

size_t NetworkRouter::faults_to_come() const {
  MutexLock lock(mutex_);
  return static_cast<size_t>(std::count_if(faults_.begin(), faults_.end(), [](auto& it) { return !it.has_come; }));
}

bool NetworkRouter::is_due(Planned& planned) {
  if (planned.has_come) return false;
  if (planned.fault.of && !fits(*planned.fault.of, sent_.back())) return false;
  const uint64_t number = planned.fault.of ? ++planned.seen : sent_.size();
  planned.has_come = number == planned.fault.message;
  return planned.has_come;
}

void NetworkRouter::add_call(const std::shared_ptr<SimulatedCall>& call) {
  MutexLock lock(mutex_);
  std::erase_if(calls_, [](const auto& weak) { return weak.expired(); });
  calls_.push_back(call);
}

void NetworkRouter::transmit(const std::shared_ptr<Packet>& packet) {
  if (!packet->sender->is_alive()) return;
  if (options_.through_bytes) pass_through_bytes(*packet);
  bool is_sent = true;
  for (const NetworkFault& fault : count(*packet)) is_sent = apply(fault, packet) && is_sent;
  if (is_sent) clock_.soon([this, packet] { arrive(packet); });
}

std::vector<NetworkFault> NetworkRouter::count(const Packet& packet) {
  std::vector<NetworkFault> found;
  MutexLock lock(mutex_);
  sent_.push_back({packet.from, packet.to, packet.method, packet.is_reply, packet.message.tensors.size()});
  for (Planned& planned : faults_) {
    if (is_due(planned)) found.push_back(planned.fault);
  }
  if (packet.is_reply && packet.call->loses_reply()) found.push_back({NetworkFault::Kind::kLose, sent_.size()});
  return found;
}

bool NetworkRouter::apply(const NetworkFault& fault, const std::shared_ptr<Packet>& packet) {
  const auto lose = [&] {
    clock_.at(clock_.now() + options_.limits.longest_cut(), [this, packet] { packet->call->break_off(clock_.now()); });
    return false;
  };
  switch (fault.kind) {
    case NetworkFault::Kind::kLose: return lose();
    case NetworkFault::Kind::kLoseReply:
      if (packet->is_reply) return lose();
      packet->call->lose_reply();
      return true;
    case NetworkFault::Kind::kDouble:
      clock_.soon([this, twin = std::make_shared<Packet>(*packet)] { arrive(twin); });
      return true;
    case NetworkFault::Kind::kDelay:
      clock_.at(clock_.now() + fault.time, [this, packet] { arrive(packet); });
      return false;
    case NetworkFault::Kind::kCut: cut_for(packet->to, packet->from, fault.time); [[fallthrough]];
    case NetworkFault::Kind::kCutOneWay: cut_for(packet->from, packet->to, fault.time); return true;
    case NetworkFault::Kind::kKillSenderBefore: kill_for(packet->from, fault.time); return false;
    case NetworkFault::Kind::kKillSenderAfter: kill_for(packet->from, fault.time); return true;
    case NetworkFault::Kind::kKillReceiverBefore: kill_for(packet->to, fault.time); return true;
    case NetworkFault::Kind::kKillReceiverAfter: packet->kills_receiver = fault.time; return true;
  }
  return true;
}

void NetworkRouter::arrive(const std::shared_ptr<Packet>& packet) {
  const auto to = packet->is_reply ? packet->call->caller() : living(packet->to);
  if (is_cut(packet->from, packet->to)) {
    hold(packet, options_.limits.longest_cut());
  } else if (to == nullptr) {
    hold(packet, packet->call->outgoing().peer().connect.value_or(options_.limits.connect));
  } else if (to->is_alive()) {
    deliver(packet, to);
    if (packet->kills_receiver) kill_for(packet->to, *packet->kills_receiver);
  }
}

void NetworkRouter::deliver(const std::shared_ptr<Packet>& packet, const std::shared_ptr<SimulatedProcess>& to) {
  const std::shared_ptr<SimulatedCall>& call = packet->call;
  if (packet->is_reply) {
    call->outgoing().end(packet->reply_header, packet->message);
    return;
  }
  to->receive_call(packet);
  if (is_cut(packet->to, packet->from)) break_if_silent(call);
}

void NetworkRouter::hold(const std::shared_ptr<Packet>& packet, Seconds limit) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(packet);
  }
  if (std::exchange(packet->has_limit, true)) return;
  clock_.at(clock_.now() + limit, [this, packet] {
    {
      MutexLock lock(mutex_);
      if (std::erase(waiting_, packet) == 0) return;
    }
    packet->call->break_off(clock_.now());
  });
}

void NetworkRouter::retry_waiting() {
  std::vector<std::shared_ptr<Packet>> waiting;
  {
    MutexLock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const auto& packet : waiting) clock_.soon([this, packet] { arrive(packet); });
}

void NetworkRouter::kill_for(const std::string& task, Seconds time) {
  kill(task);
  if (time <= Seconds{0}) return;
  clock_.at(clock_.now() + time, [this, task] {
    Told restart;
    {
      MutexLock lock(mutex_);
      restart = restart_;
    }
    if (restart && living(task) == nullptr) restart(task);
  });
}

void NetworkRouter::cut_for(const std::string& from, const std::string& to, Seconds time) {
  cut(from, to);
  if (time > Seconds{0}) clock_.at(clock_.now() + time, [this, from, to] { mend(from, to); });
}

bool NetworkRouter::is_cut(const std::string& from, const std::string& to) const {
  MutexLock lock(mutex_);
  return cuts_.contains({from, to});
}

// Keep-alive needs both directions, so one that is cut is enough.
void NetworkRouter::break_if_silent(const std::shared_ptr<SimulatedCall>& call) {
  const Line there{call->caller()->task(), call->to()}, back{call->to(), call->caller()->task()};
  const auto cuts = [this, there, back] {
    MutexLock lock(mutex_);
    const auto one = cuts_.find(there), other = cuts_.find(back);
    return std::pair(one == cuts_.end() ? 0 : one->second, other == cuts_.end() ? 0 : other->second);
  };
  clock_.at(clock_.now() + options_.limits.longest_cut(),
            [this, cuts, before = cuts(), weak = std::weak_ptr<SimulatedCall>(call)] {
              const auto now = cuts();
              const bool is_still_cut = (before.first != 0 && before.first == now.first) ||
                                        (before.second != 0 && before.second == now.second);
              const auto kept = weak.lock();
              if (is_still_cut && kept != nullptr) kept->break_off(clock_.now());
            });
}

void NetworkRouter::tell_given_up(const std::shared_ptr<SimulatedCall>& call) {
  if (!call->caller()->is_alive()) return;  // its peers notice its death
  const bool passes = !is_cut(call->caller()->task(), call->to());
  clock_.at(clock_.now() + (passes ? Seconds{0} : options_.limits.longest_cut()), [call] { call->end_incoming(); });
}

NetworkRouter::Calls NetworkRouter::open_calls() {
  Calls calls;
  MutexLock lock(mutex_);
  for (const auto& weak : calls_) {
    if (auto call = weak.lock()) calls.push_back(std::move(call));
  }
  return calls;
}

std::vector<SimulatedNetwork::Sent> NetworkRouter::sent() const {
  MutexLock lock(mutex_);
  return sent_;
}

size_t NetworkRouter::waiting() const {
  MutexLock lock(mutex_);
  return waiting_.size();
}

}  // namespace longhaul
