#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/cluster/transport/call_and_wait.h"
#include "longhaul/grpc/transport/grpc_transport.h"

namespace longhaul {

// Something that other threads make happen, some number of times.
class Happened {
 public:
  void add() EXCLUDES(mutex_);
  int times() const EXCLUDES(mutex_);
  // Waits until it has happened so often; false: it has not within that time.
  bool reaches(int times, Seconds most = Seconds{20}) EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int times_ GUARDED_BY(mutex_) = 0;
};

// The reply of a call, which may still come when this has been destroyed.
class ReplyLater {
 public:
  OutgoingCall::Done done() const;
  bool has_come() const { return state_->come.times() > 0; }
  CallReply wait(Seconds most = Seconds{20}) const;

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
  ~GrpcTasks();

  // A process of the task; in place of an earlier one, at another port.
  std::shared_ptr<GrpcTransport> start(const std::string& task);
  // The same, which does not yet handle calls.
  std::shared_ptr<GrpcTransport> prepare(const std::string& task);
  // What the tasks shall call from now on when they call that one.
  void set_address(const std::string& task, int port);
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
  explicit GrpcPair(GrpcTransportOptions common = {.limits = patient_limits()});

  void serve(Transport& transport);

  CallRequest request(const std::string& method, Message message = {"ping", {}}) const;
  // `limits.deadline` counts from now.
  Message call(const std::string& method, WaitLimits limits = {}, Message message = {"ping", {}});
  std::shared_ptr<OutgoingCall> start(const std::string& method, const ReplyLater& reply);

  Happened& come() { return state_->come; }  // calls of Park
  Happened& gone() { return state_->gone; }  // their callers
  std::vector<std::shared_ptr<IncomingCall>> take_parked();

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
