#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/grpc/server/install.h"
#include "longhaul/grpc/server/server.h"
#include "longhaul/ops/ops.h"

namespace longhaul {

// A port of 127.0.0.1 at which nobody listens, most likely.
int free_port();

// Servers of one cluster in this process, each on a port of 127.0.0.1. Not copied.
class LoopbackCluster {
 public:
  using Sizes = std::map<std::string, int>;  // of jobs
  explicit LoopbackCluster(const Sizes& jobs, const ServerOptions& common = {});

  const ClusterSpec& spec() const { return spec_; }
  Server& server(const std::string& job, int index) { return *servers_.at({job, index}); }
  std::string target(const std::string& job, int index) { return server(job, index).target(); }
  void stop(const std::string& job, int index) { servers_.erase({job, index}); }
  void start(const std::string& job, int index);

 private:
  bool try_start(const Sizes& jobs);  // false: somebody else has taken a port

  const ServerOptions common_;
  ClusterSpec spec_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Server>> servers_;
};

// Waits in real time until it is true, for a minute at most.
bool comes_true(const std::function<bool()>& done);

// A counter on a device, and its updates.
struct CounterModel {
  explicit CounterModel(const std::string& device = "", const std::string& name = "count")
      : scope(Scope(graph).with_device(device)), count(ops::variable(scope, name, Tensor::scalar(0.f))) {}

  float value(Session& session) const { return session.run(count).item<float>(); }

  Graph graph;
  const Scope scope;
  const Variable count;
  const Operation init = count.initializer();
  const Operation add = ops::assign_add(scope, count, ops::constant(scope, 1.f)).op();
};

// A queue without elements, and a run that waits for one.
struct WaitingModel {
  explicit WaitingModel(const std::string& device = "") : scope(Scope(graph).with_device(device)) {}

  Graph graph;
  const Scope scope;
  const FIFOQueue queue{scope, 10, {kFloat}};
  const Output element = queue.dequeue(scope)[0], size = queue.size(scope);
  const Operation put = queue.enqueue(scope, {ops::constant(scope, 1.f)});
};

// Whether the handler itself is there: StopSignals are counted a moment earlier.
inline bool is_handled(int signal) {
  struct sigaction action{};
  sigaction(signal, nullptr, &action);
  return action.sa_handler != SIG_DFL;
}
inline bool sigterm_is_handled() {
  return is_handled(SIGTERM);
}

}  // namespace longhaul
