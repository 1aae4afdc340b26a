#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/cancellation.h"
#include "longhaul/cluster/server/task_server.h"
#include "longhaul/cluster/wire/master_service.h"
#include "longhaul/grpc/server/forked.h"
#include "longhaul/grpc/server/server.h"
#include "longhaul/grpc/transport/grpc_transport.h"
#include "longhaul/proto/tensorflow_server.pb.h"
#include "longhaul/train/signals/preemption_grace.h"

namespace longhaul {

// What a Server is made of: a transport that listens, the task, and TensorFlow's MasterService. Any thread.
class RunningServer {
 public:
  // `definition` is complete, `options` are those of Server.
  RunningServer(const proto::ServerDef& definition, const ServerOptions& options);
  ~RunningServer();  // stop()
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  const proto::ServerDef& definition() const { return definition_; }
  const std::string& address() const { return address_; }  // that others reach it by
  const MakerProcess& maker() const { return maker_; }
  void check_process() const { maker_.check("the server at " + address_); }

  TaskServer& task() { return *task_; }

  void start() EXCLUDES(mutex_);
  // False: `timeout` has passed. Otherwise it was stopped, or is now.
  bool join(std::optional<Seconds> timeout) EXCLUDES(mutex_);
  void stop(const std::string& why) EXCLUDES(mutex_);
  bool is_stopped() const EXCLUDES(mutex_);  // or about to be

 private:
  enum class State { kNew, kStarted, kStopping, kStopped };

  bool is_over_within(std::optional<Seconds> timeout) EXCLUDES(mutex_);
  void interrupt() EXCLUDES(mutex_);
  void let_others_save(int signal) EXCLUDES(mutex_);
  void let_others_end() EXCLUDES(mutex_);
  void end_service(const std::string& why);
  MasterServiceOptions service_options(const proto::ConfigProto& config) const;

  const MakerProcess maker_;
  const PreemptionGrace stop_grace_;
  const bool stops_with_chief_;
  const std::shared_ptr<Cancellation> training_ = std::make_shared<Cancellation>();  // cancelled when it has ended
  const proto::ServerDef definition_;
  const std::shared_ptr<FileSystem> rooted_files_;  // null: all files
  const std::shared_ptr<GrpcTransport> transport_;
  const std::string address_;
  std::shared_ptr<TaskServer> task_;
  std::shared_ptr<MasterService> service_;
  mutable Mutex mutex_;
  CondVar changed_;
  State state_ GUARDED_BY(mutex_) = State::kNew;
  bool is_interrupted_ GUARDED_BY(mutex_) = false;
};

}  // namespace longhaul
