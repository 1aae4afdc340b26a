#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "longhaul/base/clock.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/step_trace.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

constexpr char kFirstCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kSecondCpu[] = "/job:localhost/replica:0/task:0/device:CPU:1";

// A step that adds the product of two matrices to a variable.
class TraceTest : public ::testing::Test {
 protected:
  TraceTest() { session_.run(w_.initializer()); }

  static Output aten(const Scope& scope, const std::string& type, const std::string& name, ops::NamedArgs arguments) {
    return ops::aten(scope, type, name, arguments).output();
  }

  proto::RunMetadata trace(const std::vector<Fetch>& fetches, RunOptions options = {}, const Feeds& feeds = {}) {
    proto::RunMetadata metadata;
    options.trace_level = TraceLevel::kFullTrace;
    session_.run(fetches, feeds, options, &metadata);
    return metadata;
  }
  proto::RunMetadata trace_train() { return trace({train_}, {}, {{x_, ones_}}); }

  // What ran on the device, in order.
  static std::vector<std::string> names(const proto::RunMetadata& metadata,
                                        const std::string& device_name = kFirstCpu) {
    std::vector<std::string> names;
    for (const auto& device : metadata.step_stats().dev_stats()) {
      if (device.device() != device_name) continue;
      for (const auto& node : device.node_stats()) names.push_back(node.node_name());
    }
    return names;
  }
  static std::set<std::string> names(const proto::GraphDef& graph) {
    std::set<std::string> names;
    for (const auto& node : graph.node()) names.insert(node.name());
    return names;
  }
  static const proto::NodeExecStats& node(const proto::RunMetadata& metadata, const std::string& name) {
    for (const auto& device : metadata.step_stats().dev_stats()) {
      for (const auto& node : device.node_stats()) {
        if (node.node_name() == name) return node;
      }
    }
    throw NotFoundError("not in the trace: " + name);
  }

  const Tensor ones_ = Tensor::of<float>({2, 3}, std::vector<float>(6, 1.f));
  Graph graph_;
  Scope root_{graph_};
  Variable w_ = ops::variable(root_, "w", Tensor::of<float>({2, 2}, std::vector<float>(4, 0.f)));
  Output x_ = ops::placeholder(root_, kFloat, {-1, 3}, "x");
  Output across_ = aten(root_.with_device("/cpu:1"), "aten::t", "across", {{"self", x_}});
  Output product_ = aten(root_, "aten::mm", "product", {{"self", x_}, {"mat2", across_}});
  Output train_ = ops::assign_add(root_, w_, product_, "train");
  DirectSession session_{graph_, {.device_count = {{"CPU", 2}}}};
};

TEST_F(TraceTest, EachOperationIsUnderItsDeviceWithItsNameInTheGraph) {
  const proto::RunMetadata metadata = trace_train();
  EXPECT_EQ(metadata.step_stats().dev_stats_size(), 2);
  EXPECT_THAT(names(metadata, kFirstCpu), ElementsAre("product", "train"));
  EXPECT_THAT(names(metadata, kSecondCpu), ElementsAre("across"));
  EXPECT_THAT(names(to_graph_def(graph_)), IsSupersetOf({"product", "train", "across"}));
  EXPECT_EQ(node(metadata, "product").timeline_label(), "product = aten::mm(x, across)");
  EXPECT_TRUE(metadata.partition_graphs().empty());
}

TEST_F(TraceTest, OperationsFollowOneAnotherWithinTheRunsTime) {
  const double before = Clock::real().wall_time();
  const proto::RunMetadata metadata = trace_train();
  const double after = Clock::real().wall_time();
  int64_t previous_end = static_cast<int64_t>(before * 1e9) - 1000;  // a double has them to 256 ns
  for (const char* name : {"across", "product", "train"}) {
    const proto::NodeExecStats& stats = node(metadata, name);
    EXPECT_GE(stats.all_start_nanos(), previous_end) << name;
    previous_end = stats.all_start_nanos() + stats.all_end_rel_nanos();
    EXPECT_EQ(stats.all_start_micros(), stats.all_start_nanos() / 1000);
    EXPECT_EQ(stats.op_end_rel_micros(), stats.all_end_rel_micros());
  }
  EXPECT_LE(previous_end, static_cast<int64_t>(after * 1e9) + 1000);
}

TEST_F(TraceTest, ResultsAreDescribed) {
  const proto::RunMetadata metadata = trace_train();
  const proto::NodeExecStats& stats = node(metadata, "across");
  ASSERT_EQ(stats.output_size(), 1);
  const proto::TensorDescription& tensor = stats.output(0).tensor_description();
  EXPECT_EQ(tensor.dtype(), proto::DT_FLOAT);
  EXPECT_EQ(from_proto(tensor.shape()), Shape({3, 2}));
  EXPECT_EQ(tensor.allocation_description().requested_bytes(), 24);
  ASSERT_EQ(stats.memory_size(), 1);
  EXPECT_EQ(stats.memory(0).total_bytes(), 24);
  const auto& threads = metadata.step_stats().dev_stats(0).thread_names();
  ASSERT_EQ(threads.count(stats.thread_id()), 1u);
  EXPECT_FALSE(threads.at(stats.thread_id()).empty());
}

TEST_F(TraceTest, ATracedRunDoesWhatAnyOtherDoes) {
  const Tensor first = session_.run(train_, {{x_, ones_}});
  proto::RunMetadata metadata;
  const RunOptions traced{.trace_level = TraceLevel::kSoftwareTrace};
  EXPECT_EQ(session_.run(train_, {{x_, ones_}}, traced, &metadata).flat<float>()[0], 2 * first.flat<float>()[0]);
  EXPECT_EQ(session_.run(train_, {{x_, ones_}}, traced).flat<float>()[0], 3 * first.flat<float>()[0]);
  EXPECT_EQ(metadata.step_stats().dev_stats_size(), 2);
}

TEST_F(TraceTest, ReadsOfVariablesAreInTheTraceOfASnapshot) {
  const proto::RunMetadata metadata = trace({w_}, {.snapshot = true});
  EXPECT_THAT(names(metadata), ElementsAre("w"));
  EXPECT_GE(node(metadata, "w").all_end_rel_micros(), 1) << "TensorBoard leaves out what took 0";
}

TEST_F(TraceTest, ASingleOperationWithoutLibtorchIsTraced) {
  FIFOQueue queue(root_, 2, {kFloat}, {.shapes = {Shape{}}});
  const Operation put = queue.enqueue(root_, {ops::constant(root_, 1.f)}, "put");
  const Output take = queue.dequeue(root_, "take")[0];
  EXPECT_THAT(names(trace({put})), ElementsAre("put"));
  EXPECT_THAT(names(trace({take})), ElementsAre("take"));
}

TEST_F(TraceTest, WhatGoesAlongWithAStepIsInItsTrace) {
  const Output sum = aten(root_, "aten::sum", "sum", {{"self", x_}});
  session_.capabilities().step_fetching->request_step_fetch(
      {{sum}, [](const std::vector<Tensor>&, const std::exception_ptr&) {}});
  EXPECT_EQ(node(trace_train(), "sum").output_size(), 1);
}

TEST_F(TraceTest, ARunOfConstantsHasADeviceOnWhichNothingRan) {
  const proto::RunMetadata metadata = trace({ops::constant(root_, 1.f)});
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  EXPECT_EQ(metadata.step_stats().dev_stats(0).device(), kFirstCpu);
  EXPECT_EQ(metadata.step_stats().dev_stats(0).node_stats_size(), 0);
}

TEST_F(TraceTest, ThePartitionGraphIsWhatTheRunNeeded) {
  proto::RunMetadata metadata;
  session_.run(train_, {{x_, ones_}}, {.output_partition_graphs = true}, &metadata);
  EXPECT_FALSE(metadata.has_step_stats());
  ASSERT_EQ(metadata.partition_graphs_size(), 1);
  EXPECT_THAT(names(metadata.partition_graphs(0)), UnorderedElementsAre("w", "x", "across", "product", "train"));
  for (const auto& node : metadata.partition_graphs(0).node()) {
    EXPECT_EQ(node.device(), node.name() == "across" ? kSecondCpu : kFirstCpu);
    EXPECT_EQ(node.attr().count("_output_shapes"), 1u);
  }
}

TEST_F(TraceTest, AFedOperationStandsInThePartitionGraphWithoutItsInputs) {
  proto::RunMetadata metadata;
  const Tensor product = Tensor::of<float>({2, 2}, std::vector<float>(4, 1.f));
  session_.run(train_, {{product_, product}}, {.output_partition_graphs = true}, &metadata);
  EXPECT_THAT(names(metadata.partition_graphs(0)), UnorderedElementsAre("w", "product", "train"));
  for (const auto& node : metadata.partition_graphs(0).node()) {
    EXPECT_EQ(node.input_size(), node.name() == "train" ? 2 : 0) << node.name();
  }
}

TEST_F(TraceTest, MetadataIsReplacedByARunAndLeftByOneThatFails) {
  proto::RunMetadata metadata = trace_train();
  const RunOptions traced{.trace_level = TraceLevel::kFullTrace};
  EXPECT_THROW(session_.run(train_, {}, traced, &metadata), InvalidArgumentError);
  EXPECT_EQ(metadata.step_stats().dev_stats_size(), 2);
  session_.run(w_, {}, traced, &metadata);
  EXPECT_EQ(metadata.step_stats().dev_stats_size(), 1);
  session_.run(w_, {}, {}, &metadata);
  EXPECT_FALSE(metadata.has_step_stats());
}

// ---- Of a run on several tasks ----

StepTrace trace_of_many(const Operation& op, size_t count) {
  StepTrace trace{.wall_time = 1.5e9};
  for (size_t i = 0; i < count; ++i) trace.operations.push_back({op, Seconds{0.001 * static_cast<double>(i)}, {}, {}});
  return trace;
}

TEST(PartTrace, HasTheTasksDevicesAsTheAskerKnowsThem) {
  Graph graph;
  Scope root(graph);
  const Output x = ops::placeholder(root.with_device("/job:ps/task:1/cpu:1"), kFloat, {}, "x");
  proto::StepStats all;
  add_part_trace("/job:other/replica:0/task:5", part_trace(trace_of_many(x.op(), 2), "/job:ps/replica:0/task:1"), &all);
  ASSERT_EQ(all.dev_stats_size(), 1);
  EXPECT_EQ(all.dev_stats(0).device(), "/job:other/replica:0/task:5/device:CPU:1");
  EXPECT_EQ(all.dev_stats(0).node_stats_size(), 2);
  EXPECT_EQ(all.dev_stats(0).node_stats(1).all_start_micros(), 1'500'000'000'001'000);
}

TEST(PartTrace, OfALargePartTheLastOperationsAreLeftOut) {
  Graph graph;
  Scope root(graph);
  const Output x = ops::placeholder(root, kFloat, {}, "x");
  const std::string part = part_trace(trace_of_many(x.op(), 1000), "/job:ps/replica:0/task:1", /*most=*/5000);
  EXPECT_LE(part.size(), 5000u);
  proto::StepStats all;
  add_part_trace("/job:ps/replica:0/task:1", part, &all);
  ASSERT_EQ(all.dev_stats_size(), 1);
  EXPECT_GT(all.dev_stats(0).node_stats_size(), 1);
  EXPECT_LT(all.dev_stats(0).node_stats_size(), 1000);
}

TEST(PartTrace, WhatIsDamagedOrTooLargeAddsNothing) {
  proto::StepStats stats, all;
  stats.add_dev_stats()->set_device("/no device");
  for (const std::string& part : {std::string("\xff"), stats.SerializeAsString(), std::string(kMostTraceBytes + 1, 0)})
    add_part_trace("/job:ps/replica:0/task:1", part, &all);
  EXPECT_EQ(all.dev_stats_size(), 0);
}

}  // namespace
}  // namespace longhaul
