#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/cluster/transport/call_and_wait.h"
#include "longhaul/grpc/transport/grpc_transport.h"

namespace longhaul {

// Something that other threads make happen, some number of times.
class Happened {
 public:
  void add() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++times_;
    changed_.notify_all();
  }
  int times() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return times_;
  }
  // Waits until it has happened so often; false: it has not within that time.
  bool reaches(int times, Seconds most = Seconds{20}) EXCLUDES(mutex_) {
    Clock& clock = Clock::real();
    const Seconds end = clock.now() + most;
    MutexLock lock(mutex_);
    while (times_ < times && clock.now() < end) clock.wait_until(changed_, mutex_, end);
    return times_ >= times;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int times_ GUARDED_BY(mutex_) = 0;
};

// The reply of a call, which may still come when this has been destroyed.
class ReplyLater {
 public:
  OutgoingCall::Done done() const {
    return [state = state_](CallReply reply) {
      {
        MutexLock lock(state->mutex);
        state->reply = std::move(reply);
      }
      state->come.add();
    };
  }
  bool has_come() const { return state_->come.times() > 0; }
  CallReply wait(Seconds most = Seconds{20}) const {
    EXPECT_TRUE(state_->come.reaches(1, most)) << "no reply has come";
    MutexLock lock(state_->mutex);
    return state_->reply;
  }

 private:
  struct State {
    Happened come;
    Mutex mutex;
    CallReply reply GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Limits that a busy machine keeps, too.
inline TransportLimits patient_limits() {
  return {.connect = Seconds{20}, .lost_line = Seconds{60}};
}
// Limits with which a test of a fault takes a second or two.
inline TransportLimits short_limits() {
  return {.connect = Seconds{1}, .lost_line = Seconds{0.7}};
}

// Tasks on loopback that know each other's addresses: real connections between transports of one process.
class GrpcTasks {
 public:
  explicit GrpcTasks(GrpcTransportOptions common = {.limits = patient_limits()}) : common_(std::move(common)) {}
  ~GrpcTasks() {
    for (const auto& [task, transport] : tasks_) transport->stop("the test has ended");
  }

  // A process of the task; in place of an earlier one, at another port.
  std::shared_ptr<GrpcTransport> start(const std::string& task) {
    const auto transport = prepare(task);
    transport->begin();
    return transport;
  }
  // The same, which does not yet handle calls.
  std::shared_ptr<GrpcTransport> prepare(const std::string& task) {
    GrpcTransportOptions options = common_;
    options.task = task;
    options.listen = "127.0.0.1:0";
    const auto transport = GrpcTransport::create(options);
    tasks_[task] = transport;
    set_address(task, transport->port());
    return transport;
  }
  // What the tasks shall call from now on when they call that one.
  void set_address(const std::string& task, int port) {
    addresses_[task] = "127.0.0.1:" + std::to_string(port);
    for (const auto& [name, transport] : tasks_) transport->set_addresses(addresses_);
  }
  const std::map<std::string, std::string>& addresses() const { return addresses_; }
  const GrpcTransportOptions& common() const { return common_; }

 private:
  const GrpcTransportOptions common_;
  std::map<std::string, std::string> addresses_;
  std::map<std::string, std::shared_ptr<GrpcTransport>> tasks_;
};

// Two tasks, one of which answers Echo, and keeps the calls of Park.
class GrpcPair {
 public:
  explicit GrpcPair(GrpcTransportOptions common = {.limits = patient_limits()}) : tasks(std::move(common)) {
    ps = tasks.start("/job:ps/replica:0/task:0");
    worker = tasks.start("/job:worker/replica:0/task:0");
    serve(*ps);
  }

  void serve(Transport& transport) {
    transport.serve("Echo", [](std::shared_ptr<IncomingCall> call) { call->reply(call->take_request()); });
    transport.serve("Park", [state = state_](std::shared_ptr<IncomingCall> call) {
      call->on_gone([state] { state->gone.add(); });
      {
        MutexLock lock(state->mutex);
        state->parked.push_back(std::move(call));
      }
      state->come.add();
    });
  }

  CallRequest request(const std::string& method, Message message = {"ping", {}}) const {
    return {.task = ps->task(), .method = method, .message = std::move(message)};
  }
  // `limits.deadline` counts from now.
  Message call(const std::string& method, WaitLimits limits = {}, Message message = {"ping", {}}) {
    if (limits.deadline.count() != 0) limits.deadline += Clock::real().now();
    return call_and_wait(*worker, request(method, std::move(message)), limits);
  }
  std::shared_ptr<OutgoingCall> start(const std::string& method, const ReplyLater& reply) {
    return worker->start(request(method), reply.done());
  }

  Happened& come() { return state_->come; }  // calls of Park
  Happened& gone() { return state_->gone; }  // their callers
  std::vector<std::shared_ptr<IncomingCall>> take_parked() {
    MutexLock lock(state_->mutex);
    return std::move(state_->parked);
  }

  GrpcTasks tasks;
  std::shared_ptr<GrpcTransport> ps, worker;

 private:
  struct State {
    Happened come, gone;
    Mutex mutex;
    std::vector<std::shared_ptr<IncomingCall>> parked GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace longhaul
