#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/cluster/master/cluster_session.h"
#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/cluster/worker/worker.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {

// Sessions of targets other than "" come from this factory, until another call; an empty one: only of this process.
inline void install_server_sessions(const SessionFactory& of_servers) {
  install_runtime();
  install_session_factory([of_servers](const std::string& target, Graph& graph, const SessionOptions& options) {
    return target.empty() || !of_servers ? new_direct_session(target, graph, options)
                                         : of_servers(target, graph, options);
  });
}

// Tasks with real workers on a simulated network: ps 0, ps 1, worker 0 and worker 1. Any thread.
class TrainingCluster {
 public:
  using Disks = std::map<std::string, FileSystem*>;  // by task; others have the real one

  explicit TrainingCluster(Disks disks = {}) : disks_(std::move(disks)) {
    install_runtime();
    network_.on_killed([this](const std::string& task) {
      if (const auto process = find(task)) process->worker->request_stop("its process was killed");
    });
    network_.on_restart([this](const std::string& task) { start(task); });
    for (const std::string& task : tasks()) start(task);
  }
  ~TrainingCluster() {
    for (const auto& process : all()) EXPECT_TRUE(process->worker->stop("the test ends", Seconds{60}));
  }

  static std::vector<std::string> tasks() { return {kPs, kPs1, kWorker, "/job:worker/replica:0/task:1"}; }

  SimulatedNetwork& network() { return network_; }
  SimulatedClock& clock() { return network_.clock(); }
  void start(const std::string& task) {
    const auto disk = disks_.find(task);
    auto process = std::make_shared<Process>(network_, task, disk == disks_.end() ? FileSystem::real() : *disk->second,
                                             trainings_ended_);
    MutexLock lock(mutex_);
    living_[task] = process;
    all_.push_back(std::move(process));
  }

  // How often a task was told that its training has ended.
  int trainings_ended() const { return trainings_ended_; }
  void announce_stop(const std::string& task, Seconds grace) { find(task)->worker->announce_stop(grace); }

  std::unique_ptr<ClusterSession> session(Graph& graph, const SessionOptions& options = {},
                                          const std::string& master = kWorker, const StreamLimits& streaming = {}) {
    return std::make_unique<ClusterSession>(
        graph, *find(master)->transport,
        ClusterSessionOptions{.tasks = tasks(), .session = options, .max_wait = Seconds{60}, .streaming = streaming});
  }

  // Whether all of these end within the time: sessions, steps, jobs, shut gates.
  bool nothing_is_left(Seconds at_most) {
    return clock().run_until(
        [this] {
          for (const auto& process : all()) {
            const Worker::Counts counts = process->worker->counts();
            if (counts.jobs != 0) return false;
            if (network_.is_alive(process->transport->task()) && process == find(process->transport->task()) &&
                (counts.sessions != 0 || counts.steps != 0 || counts.gate_is_shut))
              return false;
          }
          return true;
        },
        at_most);
  }

 private:
  struct Process {
    Process(SimulatedNetwork& network, const std::string& task, FileSystem& disk, std::atomic<int>& trainings_ended)
        : transport(network.start(task)),
          resources(std::make_shared<TaskResources>(TaskOptions{.job = task.starts_with("/job:ps") ? "ps" : "worker",
                                                                .task = task.back() - '0',
                                                                .files = &disk,
                                                                .clock = &network.clock()})) {
      WorkerOptions options;
      options.threads.around = [&network](JobThreads::Job job) { return network.clock().around(std::move(job)); };
      options.training_ended = [&trainings_ended](const std::string&) { ++trainings_ended; };
      worker = std::make_unique<Worker>(*transport, resources, options);
    }
    std::shared_ptr<Transport> transport;
    std::shared_ptr<TaskResources> resources;
    std::unique_ptr<Worker> worker;
  };

  std::shared_ptr<Process> find(const std::string& task) {
    MutexLock lock(mutex_);
    return living_.at(task);
  }
  std::vector<std::shared_ptr<Process>> all() {
    MutexLock lock(mutex_);
    return all_;
  }

  const Disks disks_;
  const ThreadsEnd threads_end_;
  std::atomic<int> trainings_ended_{0};
  SimulatedNetwork network_{{.threads = SimulatedClock::Threads::kSeveral}};
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Process>> living_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Process>> all_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
