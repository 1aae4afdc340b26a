#include "longhaul/cluster/transport/transport.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul {

bool is_address(const std::string& task) {
  return !task.starts_with('/');
}

Transport::Transport(std::string task, uint64_t incarnation, Clock& clock)
    : task_(std::move(task)), incarnation_(incarnation), clock_(clock), server_(task_, incarnation, clock) {}

Transport::~Transport() = default;

std::shared_ptr<OutgoingCall> Transport::start(CallRequest request, OutgoingCall::Done done) {
  const std::shared_ptr<OutgoingCall> call = open(request, std::move(done));
  if (const std::exception_ptr stopped = stopped_error(request.method)) {
    call->end({.error = stopped});
  } else if (request.time_left && *request.time_left <= Seconds{0}) {
    call->give_up_late(clock_.now());
  } else if (request.pause > Seconds{0}) {
    send_after_pause(call, std::move(request));
  } else {
    send(call, header_of_call(request), std::move(request.message));
  }
  return call;
}

// The call may end meanwhile: it is cancelled, or the transport stops.
void Transport::send_after_pause(std::shared_ptr<OutgoingCall> call, CallRequest request) {
  const Seconds pause = std::min(request.pause, request.time_left.value_or(request.pause));
  if (request.time_left) *request.time_left -= pause;
  wake_after(pause, [this, call = std::move(call), request = std::move(request)] {
    if (call->has_ended()) return;
    if (request.time_left && *request.time_left <= Seconds{0}) {
      call->give_up_late(clock_.now());
    } else {
      send(call, header_of_call(request), request.message);
    }
  });
}

std::shared_ptr<OutgoingCall> Transport::open(const CallRequest& request, OutgoingCall::Done done) {
  const auto number = std::make_shared<uint64_t>(0);  // the call's, once it has one
  const auto end = [calls = outgoing_, number, done = std::move(done)](CallReply reply) {
    calls->remove(*number);
    done(std::move(reply));
  };
  const auto call = std::make_shared<OutgoingCall>(OutgoingCall::Peer{.task = request.task,
                                                                      .address = address_of(request.task),
                                                                      .method = request.method,
                                                                      .incarnation = request.incarnation,
                                                                      .began = clock_.now(),
                                                                      .connect = request.connect},
                                                   end);
  *number = outgoing_->add(call);
  return call;
}

proto::CallHeader Transport::header_of_call(const CallRequest& request) const {
  proto::CallHeader header;
  header.set_method(request.method);
  if (!is_address(request.task)) header.set_to_task(request.task);
  header.set_to_incarnation(request.incarnation);
  header.set_from_task(task_);
  header.set_from_incarnation(incarnation_);
  if (request.time_left) {
    constexpr double kMostMicros = 1e15;  // 30 years
    const double micros = std::clamp(request.time_left->count() * 1e6, 1.0, kMostMicros);
    header.set_time_left_micros(static_cast<int64_t>(micros));
  }
  return header;
}

std::exception_ptr Transport::stopped_error(const std::string& method) const {
  MutexLock lock(mutex_);
  if (!is_stopped_) return nullptr;
  return std::make_exception_ptr(UnavailableError(
      fmt::format("{} was not answered: the calls of task {} were stopped: {}", method, task_, why_stopped_)));
}

void Transport::stop(const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (is_stopped_) return;
    is_stopped_ = true;
    why_stopped_ = why;
  }
  server_.stop(why);
  for (const auto& call : outgoing_->all()) call->give_up(stopped_error(call->peer().method));
  end_others(why);
}

void Transport::end_others(const std::string&) {}

}  // namespace longhaul
