#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/cluster/server/server_session.h"
#include "longhaul/cluster/worker/worker.h"
#include "longhaul/proto/config.pb.h"

namespace longhaul {

// What a task is told when it begins.
struct TaskServerOptions {
  ClusterSpec cluster{};  // in which the task has the address at which it listens
  // Its devices (device_count) and threads, and the defaults of the sessions on it.
  proto::ConfigProto config{};
  WorkerOptions worker{};
  TaskOptions resources{};           // its files and its memory for snapshots; the rest follows from the above
  Seconds max_wait = kSessionWaits;  // of its sessions
};

// A task of a cluster on any transport: variables, queues and devices, which outlive sessions; the worker that serves
// the masters of the cluster; and sessions whose master is here.
//
//   TaskServer server(transport, {.cluster = cluster});
//   const auto session = server.new_session(graph);
//   ...
//   server.stop("the program ends", Seconds{10});
//
// Any thread may call.
class TaskServer {
 public:
  // Serves from now on. InvalidArgumentError: the cluster lacks the transport's task, or the config is malformed;
  // UnimplementedError: the config has a field that nothing here can heed.
  TaskServer(std::shared_ptr<Transport> transport, const TaskServerOptions& options);
  ~TaskServer();  // stop() with 10 s
  TaskServer(const TaskServer&) = delete;
  TaskServer& operator=(const TaskServer&) = delete;

  const ServerTask& about() const { return about_; }
  TaskResources& resources() const { return worker_.resources(); }
  Worker::Counts counts() const { return worker_.counts(); }

  // A session whose own work is done here. The first one logs how many threads an operation has. It may outlive the
  // server, whose end it sees as a task's death. Throws what session_on() throws.
  std::unique_ptr<Session> new_session(Graph& graph, const SessionOptions& options = {});

  // Its own, with the incarnation of its process, as other tasks see them.
  std::vector<DeviceAttributes> own_devices() const;

  // The devices of all tasks of the cluster that the filters leave, this one's first. A task that has not answered
  // within 2 s is left out, with a warning that names it.
  std::vector<DeviceAttributes> list_devices(const std::vector<std::string>& filters, const WaitLimits& limits);

  // Empties the containers on all tasks of the cluster; without names, all of them. All sessions on these tasks end
  // with AbortedError. UnavailableError: a task has not answered within 10 s, and is named; the others may have.
  void reset(const std::vector<std::string>& containers, const WaitLimits& limits);

  // As Worker's.
  size_t announce_stop(Seconds grace) { return worker_.announce_stop(grace); }
  bool wait_until_unused(Seconds until) { return worker_.wait_until_unused(until); }

  // Ends all sessions, steps and waits, and then the transport's calls: whoever calls later gets UnavailableError, and
  // sessions that use this task end with AbortedError. False: a step has not ended within that time, and is left
  // behind. May be called again.
  bool stop(const std::string& why, Seconds timeout);

 private:
  const std::shared_ptr<Transport> transport_;
  const ServerTask about_;
  const Seconds max_wait_;
  Worker worker_;
};

}  // namespace longhaul
