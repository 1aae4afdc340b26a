#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "longhaul/graph/scope.h"
#include "longhaul/placement/part_graph.h"

namespace longhaul {

// A graph on a cluster with tasks ps 0, ps 1, worker 0 and worker 1. The session's own task is worker 0. Values are
// texts, as operations on these need no libtorch.
class PlacementTest : public ::testing::Test {
 protected:
  static TaskDevices task(const std::string& name, uint64_t incarnation = 0, std::vector<std::string> devices = {}) {
    TaskDevices task{.task = DeviceSpec::parse(name), .incarnation = incarnation};
    for (const std::string& device : devices) {
      task.devices.push_back(task.task.merged_with(DeviceSpec::parse(device)));
    }
    return task;
  }
  static std::vector<TaskDevices> cluster() {
    return {task("/job:worker/replica:0/task:1"), task("/job:worker/replica:0/task:0"),
            task("/job:ps/replica:0/task:1"), task("/job:ps/replica:0/task:0")};
  }
  static DeviceList devices(const std::vector<std::string>& filters = {}) {
    return DeviceList(cluster(), DeviceSpec::parse("/job:worker/replica:0/task:0"), filters);
  }

  Scope on(const std::string& device) const { return root_.with_device(device); }
  static Output variable(const Scope& scope, const std::string& name) {
    return scope.add("VariableV2", name, {}, {{"dtype", kString}, {"shape", Shape()}}).output();
  }
  static Output constant(const Scope& scope, const std::string& name) {
    return scope.add("Const", name, {}, {{"value", Tensor::scalar(name)}, {"dtype", kString}}).output();
  }
  static Output join(const Scope& scope, const std::string& name, std::vector<Output> inputs) {
    return scope.add("StringJoin", name, std::move(inputs), {{"separator", std::string("+")}}).output();
  }
  // As in an imported graph: in a scope, what takes a variable has the variable's device.
  Output assign_at(const std::string& device, const std::string& name, const Output& variable, const Output& value) {
    return graph_.add_operation({.type = "Assign", .name = name, .inputs = {variable, value}, .device = device})
        .output();
  }
  static Output identity(const Scope& scope, const std::string& name, const Output& input) {
    return scope.add("Identity", name, {input}).output();
  }
  static Output assign(const Scope& scope, const std::string& name, const Output& variable, const Output& value) {
    return scope.add("Assign", name, {variable, value}).output();
  }
  static Operation group(const Scope& scope, const std::string& name, std::vector<Operation> operations) {
    return scope.with_control_dependencies(std::move(operations)).add("NoOp", name);
  }

  static Session::Request request(const std::vector<Fetch>& fetches, std::vector<Output> feeds, const Graph& graph) {
    Session::Request request{.feeds = std::move(feeds)};
    for (const Fetch& fetch : fetches) request.fetches.push_back(fetch.resolve(graph));
    return request;
  }

  Placement place(const std::vector<Fetch>& fetches) {
    return placer_.place(graph_, RunOrder(request(fetches, {}, graph_)).operations(), devices_);
  }
  std::string device_of(const Output& output) { return place({output}).device_of(output.op()).to_string(); }
  DividedRun divide(const std::vector<Fetch>& fetches, std::vector<Output> feeds = {}) {
    const Session::Request asked = request(fetches, std::move(feeds), graph_);
    const RunOrder run(asked);
    return divide_run(asked, run, placer_.place(graph_, run.operations(), devices_));
  }

  Graph graph_;
  Scope root_{graph_};
  Placer placer_;
  DeviceList devices_ = devices();
};

inline constexpr char kPs0[] = "/job:ps/replica:0/task:0/device:CPU:0";
inline constexpr char kPs1[] = "/job:ps/replica:0/task:1/device:CPU:0";
inline constexpr char kWorker0[] = "/job:worker/replica:0/task:0/device:CPU:0";
inline constexpr char kWorker1[] = "/job:worker/replica:0/task:1/device:CPU:0";

}  // namespace longhaul
