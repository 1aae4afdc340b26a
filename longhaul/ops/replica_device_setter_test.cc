#include "longhaul/ops/replica_device_setter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "longhaul/base/log.h"
#include "longhaul/cluster/spec/cluster_spec.h"
#include "longhaul/ops/partitioned_variable.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReplicaDeviceSetter : public ::testing::Test {
 protected:
  static ClusterSpec cluster() { return ClusterSpec({{"ps", {"a:1", "b:1"}}, {"worker", {"c:1", "d:1"}}}); }

  // What a function says about an operation of this type for which inner scopes say `device`.
  static std::string chosen(const DeviceFunction& setter, const std::string& type, const std::string& device = "") {
    return setter({.type = type, .name = "op", .device = device});
  }

  static std::vector<std::string> chosen_times(int times, const DeviceFunction& setter) {
    std::vector<std::string> devices;
    for (int i = 0; i < times; ++i) devices.push_back(chosen(setter, "VariableV2"));
    return devices;
  }

  std::string variable_device(const Scope& scope, const std::string& name) {
    return ops::variable(scope, name, Tensor::scalar(1.f)).ref().op().device();
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(ReplicaDeviceSetter, SpreadsVariablesAndLeavesTheRestToWorkers) {  // DS-1
  const Scope scope = root_.with_device(replica_device_setter({.cluster = cluster()}));
  EXPECT_EQ(variable_device(scope, "v0"), "/job:ps/task:0");
  const Variable v = ops::variable(scope.sub("layer"), "v1", Tensor::scalar(1.f));
  EXPECT_EQ(v.ref().op().device(), "/job:ps/task:1");
  EXPECT_EQ(v.initializer().device(), "/job:ps/task:1");
  EXPECT_EQ(Output(v).op().device(), "/job:ps/task:1");
  EXPECT_EQ(v.initial_value().op().device(), "/job:worker");
  EXPECT_EQ(variable_device(scope, "v2"), "/job:ps/task:0");
  EXPECT_EQ(ops::identity(scope, v).op().device(), "/job:worker");
  EXPECT_EQ(ops::read_value(scope, v).op().device(), "/job:ps/task:1");
  EXPECT_EQ(ops::assign_add(scope, v, ops::constant(scope, 1.f)).op().device(), "/job:ps/task:1");
}

TEST_F(ReplicaDeviceSetter, KnowsTheTypesThatHoldAModel) {  // DS-2
  const DeviceFunction setter = replica_device_setter({.ps_tasks = 1});
  for (const std::string& type : standard_ps_ops()) EXPECT_EQ(chosen(setter, type), "/job:ps/task:0") << type;
  EXPECT_EQ(standard_ps_ops().size(), 13u);
  for (const char* type : {"HashTableV2", "FIFOQueueV2", "SparseConditionalAccumulator", "Const", "TFRecordReaderV2"}) {
    EXPECT_EQ(chosen(setter, type), "/job:worker") << type;
  }
  const DeviceFunction queues = replica_device_setter({.ps_tasks = 1, .ps_ops = {"FIFOQueueV2"}});
  EXPECT_EQ(chosen(queues, "FIFOQueueV2"), "/job:ps/task:0");
  EXPECT_EQ(chosen(queues, "VariableV2"), "/job:worker");
}

TEST_F(ReplicaDeviceSetter, LocalVariablesTakeATurn) {  // DS-2
  const Scope scope = root_.with_device(replica_device_setter({.ps_tasks = 2}));
  const Output one = ops::constant(scope, 1.f);
  EXPECT_EQ(ops::local_variable(scope, "local", one).ref().op().device(), "/job:ps/task:0");
  EXPECT_EQ(variable_device(scope, "v"), "/job:ps/task:1");
}

TEST_F(ReplicaDeviceSetter, TheGlobalStepTakesATurnWithoutAName) {  // DS-1
  const Scope scope = root_.sub("model").with_device(replica_device_setter({.ps_tasks = 2}));
  const Variable step = ops::create_global_step(scope);
  EXPECT_EQ(step.name(), "global_step");
  EXPECT_EQ(step.ref().op().device(), "/job:ps/task:0");
  EXPECT_EQ(step.initializer().device(), "/job:ps/task:0");
  EXPECT_EQ(variable_device(scope, "v"), "/job:ps/task:1");
}

TEST_F(ReplicaDeviceSetter, PartsOfAVariableTakeTurns) {
  const Scope scope = root_.with_device(replica_device_setter({.ps_tasks = 2}));
  const auto parts =
      ops::partitioned_variable(scope, "p", {6, 2}, {.parts = 3}, [&](const Scope& at, const SaveSliceInfo& part) {
        return ops::placeholder(at, kFloat, Shape(part.shape), "initial");
      });
  std::vector<std::string> devices;
  for (const Variable& part : parts.parts()) devices.push_back(part.ref().op().device());
  EXPECT_THAT(devices, ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"));
}

TEST_F(ReplicaDeviceSetter, InnerDevicesAreMergedOverIt) {  // DS-3
  const Scope scope = root_.with_device(replica_device_setter({.ps_tasks = 2})).with_device("/cpu:0");
  EXPECT_EQ(variable_device(scope, "v"), "/job:ps/task:0/device:CPU:0");
  EXPECT_EQ(scope.add("NoOp", "op").device(), "/job:worker/device:CPU:0");
}

TEST_F(ReplicaDeviceSetter, AnotherJobWinsAndTakesNoTurn) {  // DS-4
  const Scope scope = root_.with_device(replica_device_setter({.ps_tasks = 2}));
  EXPECT_EQ(variable_device(scope.with_device("/job:moon"), "moon"), "/job:moon");
  EXPECT_EQ(variable_device(scope.with_device("/job:worker/task:1"), "worker"), "/job:worker/task:1");
  EXPECT_EQ(variable_device(scope.with_device("/job:ps"), "ps"), "/job:ps/task:0");
  EXPECT_EQ(variable_device(scope.with_device("/job:ps/task:0"), "ps0"), "/job:ps/task:0");
  EXPECT_EQ(variable_device(scope.with_device(nullptr), "none"), "");
  EXPECT_EQ(variable_device(scope, "after"), "/job:ps/task:0");
}

TEST_F(ReplicaDeviceSetter, APsDeviceWithoutAJobGetsNoTask) {  // DS-5
  const DeviceFunction setter = replica_device_setter({.ps_tasks = 2, .ps_device = "/cpu:0"});
  EXPECT_EQ(chosen(setter, "VariableV2"), "/device:CPU:0");
  EXPECT_EQ(chosen(setter, "VariableV2", "/job:moon"), "/job:moon/device:CPU:0");
  EXPECT_FALSE(replica_device_setter({.ps_device = "/cpu:0", .cluster = cluster()}));
}

TEST_F(ReplicaDeviceSetter, MayLeaveDevicesAsTheyAre) {  // DS-6
  std::vector<std::string> warnings;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& text) { warnings.push_back(text); });
  const DeviceFunction setter = replica_device_setter({.ps_tasks = 2, .merge_devices = false});
  set_log_sink(before);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("merge_devices = false is deprecated")));
  EXPECT_EQ(chosen(setter, "VariableV2", "/job:ps"), "/job:ps");
  EXPECT_EQ(chosen(setter, "NoOp", "/cpu:0"), "/cpu:0");
  EXPECT_EQ(chosen(setter, "VariableV2"), "/job:ps/task:0");
}

TEST_F(ReplicaDeviceSetter, TakesOtherJobsOfTheCluster) {  // DS-7
  const ClusterSpec sky({{"moon", {"a:1", "b:1", "c:1"}}, {"sun", {"d:1"}}});
  const DeviceFunction setter =
      replica_device_setter({.ps_device = "/job:moon/cpu:0", .worker_device = "/job:sun", .cluster = sky});
  EXPECT_THAT(chosen_times(4, setter), ElementsAre("/job:moon/task:0/device:CPU:0", "/job:moon/task:1/device:CPU:0",
                                                   "/job:moon/task:2/device:CPU:0", "/job:moon/task:0/device:CPU:0"));
  EXPECT_EQ(chosen(setter, "NoOp"), "/job:sun");
  EXPECT_THAT(chosen_times(2, replica_device_setter({.ps_tasks = 2, .ps_device = "/job:ps/task:1"})),
              ElementsAre("/job:ps/task:0", "/job:ps/task:1"));
}

TEST_F(ReplicaDeviceSetter, GivesOnlyTasksThatTheJobHas) {
  const ClusterSpec sparse({{"ps", {{1, "a:1"}, {4, "b:1"}}}});
  EXPECT_THAT(chosen_times(3, replica_device_setter({.cluster = sparse})),
              ElementsAre("/job:ps/task:1", "/job:ps/task:4", "/job:ps/task:1"));
}

TEST_F(ReplicaDeviceSetter, IsEmptyWhereThereAreNoPsTasks) {  // DS-8
  EXPECT_FALSE(replica_device_setter({}));
  EXPECT_FALSE(replica_device_setter({.cluster = ClusterSpec({{"worker", {"c:1"}}})}));
  EXPECT_FALSE(replica_device_setter({.cluster = ClusterSpec({{"ps", JobTasks()}, {"worker", {"c:1"}}})}));
  EXPECT_FALSE(replica_device_setter({.ps_device = "/job:moon", .cluster = cluster()}));
  EXPECT_EQ(variable_device(root_.with_device(replica_device_setter({})), "alone"), "");
  EXPECT_THAT(refusal_of([] { replica_device_setter({.ps_tasks = -1}); }), HasSubstr("ps_tasks is -1, below 0"));
  EXPECT_THROW(replica_device_setter({.ps_tasks = 1, .ps_device = "ps"}), InvalidArgumentError);
  EXPECT_THROW(replica_device_setter({.ps_tasks = 1, .worker_device = "/tusk:0"}), InvalidArgumentError);
}

TEST_F(ReplicaDeviceSetter, SaysSoIfTheServersHaveAnotherName) {
  std::string said;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& text) { said += text; });
  replica_device_setter({.cluster = ClusterSpec({{"chief", {"b:1"}}, {"worker", {"c:1"}}})});
  EXPECT_EQ(said, "");
  replica_device_setter({.cluster = ClusterSpec({{"PS", {"a:1"}}, {"worker", {"c:1"}}})});
  set_log_sink(before);
  EXPECT_THAT(said, HasSubstr("the cluster has no job 'ps', of ps_device, but PS, worker"));
}

TEST_F(ReplicaDeviceSetter, AsksAStrategy) {  // DS-9
  std::vector<std::string> asked;
  int task = 1;
  const DeviceFunction setter = replica_device_setter({.ps_tasks = 2, .ps_strategy = [&](const OperationSpec& op) {
                                                         asked.push_back(op.name);
                                                         return task;
                                                       }});
  const Scope scope = root_.with_device(setter);
  EXPECT_EQ(variable_device(scope, "a"), "/job:ps/task:1");
  EXPECT_EQ(variable_device(scope, "b"), "/job:ps/task:1");
  EXPECT_THAT(asked, ElementsAre("a", "b"));
  for (const int none : {-1, 2}) {
    task = none;
    EXPECT_THAT(
        refusal_of([&] { variable_device(scope, "c"); }),
        HasSubstr("ps_strategy chose the task " + std::to_string(none) + " for c (VariableV2), but there are 2"));
  }
}

TEST_F(ReplicaDeviceSetter, BalancesBytes) {  // DS-9
  const Scope scope = root_.with_device(
      replica_device_setter({.ps_tasks = 2, .ps_strategy = GreedyLoadBalancingStrategy(2, byte_size_load_fn)}));
  std::vector<std::string> devices;
  for (const int64_t size : {100, 10, 10, 90, 10}) {
    const Output initial = ops::placeholder(scope, kFloat, {size}, "initial");
    devices.push_back(ops::variable(scope, "v" + std::to_string(devices.size()), initial).ref().op().device());
  }
  EXPECT_THAT(devices,
              ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:0"));
}

TEST_F(ReplicaDeviceSetter, RefusesLoadsThatAreNone) {
  OperationSpec op{.type = "VariableV2", .name = "v", .attrs = {{"dtype", kDouble}, {"shape", Shape({2, 3})}}};
  EXPECT_EQ(byte_size_load_fn(op), 48);
  op.attrs["dtype"] = kString;
  EXPECT_EQ(byte_size_load_fn(op), 6);
  op.attrs["shape"] = Shape({-1});
  EXPECT_THAT(refusal_of([&] { byte_size_load_fn(op); }),
              HasSubstr("the size of v (VariableV2) is not known: its shape"));
  op.attrs.erase("shape");
  EXPECT_THAT(refusal_of([&] { byte_size_load_fn(op); }), HasSubstr("it has no shape"));
  EXPECT_THAT(refusal_of([] { GreedyLoadBalancingStrategy(0, byte_size_load_fn); }), HasSubstr("num_tasks is 0"));
  EXPECT_THAT(refusal_of([] { GreedyLoadBalancingStrategy(1, nullptr); }), HasSubstr("load_fn is empty"));
  for (const double load : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    GreedyLoadBalancingStrategy strategy(1, [load](const OperationSpec&) { return load; });
    EXPECT_THAT(refusal_of([&] { strategy(op); }), HasSubstr("the load of v is"));
  }
}

}  // namespace
}  // namespace longhaul
