#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/cluster/master/cluster_session.h"
#include "longhaul/cluster/master/toy_task_fixture.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/graph/scope.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {

inline const std::string kOtherWorker = "/job:worker/replica:0/task:1";

// A cluster of toy tasks, and a graph with the variables v on ps 0 and w on ps 1. Sessions are worker 0's, unless said
// otherwise.
class ClusterSessionTest : public ::testing::Test {
 protected:
  ClusterSessionTest() {
    previous_sink_ = set_log_sink([this](LogLevel, const std::string& text) { logged_.push_back(text); });
    network_.on_killed([this](const std::string& task) { toys_.erase(task); });
    network_.on_restart([this](const std::string& task) { start(task); });
  }
  ~ClusterSessionTest() override { set_log_sink(previous_sink_); }

  void start(const std::string& task) { toys_[task] = ToyTask::start(network_, task); }
  void start_all() {
    for (const std::string& task : {kPs, kPs1, kWorker, kOtherWorker}) start(task);
  }
  ToyTask& toy(const std::string& task) { return *toys_.at(task); }

  static ClusterSessionOptions options() { return {.tasks = {kPs, kPs1, kWorker, kOtherWorker}}; }
  std::unique_ptr<ClusterSession> session(const ClusterSessionOptions& options = ClusterSessionTest::options(),
                                          const std::string& master = kWorker) {
    return std::make_unique<ClusterSession>(graph_, toy(master).transport(), options);
  }

  // ---- The graph ----

  Scope on(const std::string& device) const { return root_.with_device(device); }
  static Output variable(const Scope& scope, const std::string& name) {
    return scope.add("VariableV2", name, {}, {{"dtype", kString}, {"shape", Shape()}}).output();
  }
  static Operation add_one(const Scope& scope, const std::string& name, const Output& variable) {
    const Output value =
        scope.add("Const", name + "/one", {}, {{"value", Tensor::scalar("one")}, {"dtype", kString}}).output();
    return scope.add("Assign", name, {variable, value});
  }
  static Output read(const Scope& scope, const std::string& name, const Output& variable) {
    return scope.add("Identity", name, {variable}).output();
  }
  Operation group(const std::string& name, std::vector<Operation> operations) const {
    return root_.with_control_dependencies(std::move(operations)).add("NoOp", name);
  }

  // ---- Time ----

  Seconds now() { return network_.clock().now(); }
  void in(Seconds time, std::function<void()> event) { network_.clock().at(now() + time, std::move(event)); }
  void pass(Seconds time) {
    network_.clock().run_until([] { return false; }, time);
  }

  // What the session has left on tasks that live.
  void expect_nothing_left() {
    pass(Seconds{30});
    EXPECT_EQ(network_.waiting(), 0u);
    for (const auto& [name, task] : toys_) {
      EXPECT_EQ(task->sessions(), 0u) << name;
      EXPECT_EQ(task->unfinished_steps(), 0u) << name;
      EXPECT_EQ(task->shut_doors(), 0u) << name;
      EXPECT_EQ(task->transport().open_calls(), Transport::Open{}) << name;
    }
  }

  SimulatedNetwork network_{{.through_bytes = true}};
  std::vector<std::string> logged_;
  LogSink previous_sink_;
  std::map<std::string, std::shared_ptr<ToyTask>> toys_;
  Graph graph_;
  Scope root_{graph_};
  const Scope ps0_ = on("/job:ps/task:0"), ps1_ = on("/job:ps/task:1");
  const Output v_ = variable(ps0_, "v"), w_ = variable(ps1_, "w");
  const Operation add_v_ = add_one(ps0_, "add_v", v_), add_w_ = add_one(ps1_, "add_w", w_);
  const Operation train_ = group("train", {add_v_, add_w_});
  const Output read_v_ = read(ps0_, "read_v", v_), read_w_ = read(ps1_, "read_w", w_);
};

}  // namespace longhaul
