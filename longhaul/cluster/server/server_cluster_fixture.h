#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/cluster/server/task_server.h"
#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/config_proto.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {

inline constexpr char kClient[] = "/job:longhaul_client/replica:0/task:0";

// Servers of a cluster on a simulated network: ps 0, ps 1 and worker 0, and whatever else a test starts. The test's
// thread is at work, so that time passes only while it waits.
class ServerClusterTest : public ::testing::Test {
 protected:
  ServerClusterTest();
  ~ServerClusterTest() override;

  // The addresses are given in the order of the first starts (SimulatedNetwork).
  static ClusterSpec cluster();
  TaskServer& start(const std::string& task, const SessionOptions& config = {});
  TaskServer& start(const std::string& task, const SessionOptions& config, const ClusterSpec& cluster);
  void kill(const std::string& task);
  TaskServer& server(const std::string& task) { return *find(task); }
  std::string address(const std::string& task) { return server(task).about().address; }
  std::shared_ptr<Transport> start_client() { return network_.start(kClient); }

  SimulatedNetwork& network() { return network_; }
  SimulatedClock& clock() { return network_.clock(); }
  Seconds now() { return clock().now(); }
  bool passes(const std::function<bool()>& done, Seconds most) { return clock().run_until(done, most); }
  WaitLimits within(Seconds time) { return {.deadline = now() + time}; }

  // Another thread, to whose end time passes.
  struct Beside {
    std::future<void> thread;
    std::shared_ptr<std::atomic<bool>> is_over;
  };
  Beside beside(const std::function<void()>& body);
  void finish(Beside& beside);

  // Whether no task that lives has a session or a step within a minute.
  bool nothing_is_left();
  std::vector<std::string> logged();

 private:
  std::shared_ptr<TaskServer> find(const std::string& task);
  std::vector<std::shared_ptr<TaskServer>> all();

  const ThreadsEnd threads_end_;
  LogSink previous_sink_;
  Mutex mutex_;
  std::vector<std::string> logged_ GUARDED_BY(mutex_);
  SimulatedNetwork network_{{.threads = SimulatedClock::Threads::kSeveral, .through_bytes = true}};
  std::map<std::string, std::shared_ptr<TaskServer>> living_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<TaskServer>> all_ GUARDED_BY(mutex_);
  const SimulatedClock::AtWork work_{network_.clock()};
};

// Variables on both ps tasks, and what is placed nowhere.
struct SharedModel {
  explicit SharedModel(const std::string& on0 = "/job:ps/task:0", const std::string& on1 = "/job:ps/task:1")
      : v(ops::variable(root.with_device(on0), "v", Tensor::scalar(1.f))),
        w(ops::variable(root.with_device(on1), "w", Tensor::scalar(10.f))) {}

  Graph graph;
  Scope root{graph};
  Variable v, w;
  Output sum = ops::add(root, v, w);
  Operation train = ops::group(root,
                               {ops::assign_add(root, v, ops::constant(root, 1.f)).op(),
                                ops::assign_add(root, w, ops::constant(root, 1.f)).op()},
                               "train");
  Operation init = ops::global_variables_initializer(root);
};

// A run that waits until somebody ends it.
struct EmptyQueue {
  explicit EmptyQueue(const std::string& device) : on(Scope(graph).with_device(device)) {}

  Graph graph;
  const Scope on;
  const FIFOQueue queue{on, 1, {kFloat}};
  const Output element = queue.dequeue(on)[0];
};

}  // namespace longhaul
