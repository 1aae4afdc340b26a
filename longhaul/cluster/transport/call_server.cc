#include "longhaul/cluster/transport/call_server.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {
namespace {

// Calls and what they begin are kept and told of by the caller's name.
void check_caller(const proto::CallHeader& header, const std::string& task) {
  constexpr size_t kLongestName = 1000;
  if (header.from_task().size() <= kLongestName) return;
  throw InvalidArgumentError(fmt::format("task {}: {} is from a task whose name has {} bytes; {} are the limit", task,
                                         excerpt(header.method()), header.from_task().size(), kLongestName));
}

}  // namespace

CallServer::CallServer(std::string task, uint64_t incarnation, Clock& clock)
    : task_(std::move(task)), incarnation_(incarnation), clock_(clock) {}

void CallServer::serve(const std::string& method, CallHandler handler) {
  MutexLock lock(mutex_);
  handlers_[method] = std::move(handler);
}

std::shared_ptr<IncomingCall> CallServer::dispatch(const proto::CallHeader& header, Message request,
                                                   IncomingCall::Respond respond) {
  CallHandler handler;
  try {
    handler = find(header);
  } catch (...) {
    respond({.error = std::current_exception(), .incarnation = incarnation_});
    return nullptr;
  }
  const std::shared_ptr<IncomingCall> call = open(header, std::move(request), std::move(respond));
  // It may have been stopped since it was looked at; then nobody else ends this call.
  if (const std::exception_ptr stopped = stopped_error(header.method())) call->fail(stopped);
  try {
    handler(call);
  } catch (...) {
    call->fail(std::current_exception());
  }
  return call;
}

CallHandler CallServer::find(const proto::CallHeader& header) const {
  if (const std::exception_ptr stopped = stopped_error(header.method())) std::rethrow_exception(stopped);
  check_caller(header, task_);
  if (header.to_incarnation() != 0 && header.to_incarnation() != incarnation_) {
    std::rethrow_exception(wrong_incarnation(header.method(), task_, header.to_incarnation(), incarnation_));
  }
  if (!header.to_task().empty() && header.to_task() != task_) {
    throw InvalidArgumentError(
        fmt::format("{} is for task {}, but this is task {}: compare the addresses in the "
                    "cluster specs of both",
                    excerpt(header.method()), excerpt(header.to_task()), task_));
  }
  MutexLock lock(mutex_);
  const auto found = handlers_.find(header.method());
  if (found == handlers_.end()) {
    throw UnimplementedError(fmt::format("task {} does not know the method {}", task_, excerpt(header.method())));
  }
  return found->second;
}

std::shared_ptr<IncomingCall> CallServer::open(const proto::CallHeader& header, Message request,
                                               IncomingCall::Respond respond) {
  const auto number = std::make_shared<uint64_t>(0);  // the call's, once it has one
  const auto end = [calls = calls_, number, incarnation = incarnation_, respond = std::move(respond)](CallReply reply) {
    calls->remove(*number);
    reply.incarnation = incarnation;
    respond(std::move(reply));
  };
  const Seconds time_left = std::chrono::duration<double, std::micro>(static_cast<double>(header.time_left_micros()));
  const Seconds deadline = header.time_left_micros() > 0 ? clock_.now() + time_left : Seconds{0};
  const auto call = std::make_shared<IncomingCall>(header.method(),
                                                   IncomingCall::Caller{header.from_task(), header.from_incarnation()},
                                                   deadline, std::move(request), end);
  *number = calls_->add(call);
  return call;
}

std::exception_ptr CallServer::stopped_error(const std::string& method) const {
  MutexLock lock(mutex_);
  if (!is_stopped_) return nullptr;
  return std::make_exception_ptr(
      UnavailableError(fmt::format("task {} does not answer {}: it was stopped: {}", task_, method, why_stopped_)));
}

void CallServer::stop(const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (is_stopped_) return;
    is_stopped_ = true;
    why_stopped_ = why;
  }
  for (const auto& call : calls_->all()) call->fail(stopped_error(call->method()));
}

}  // namespace longhaul
