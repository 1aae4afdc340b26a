#include "longhaul/testing/scripted_session.h"

#include <gtest/gtest.h>

#include "longhaul/ops/state_ops.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/session/snapshots.h"

namespace longhaul::testing {
namespace {

class ScriptedSessionTest : public ::testing::Test {
 protected:
  Graph graph;
  Scope root{graph};
  Variable counter = ops::variable(root, "counter", Tensor::scalar<int64_t>(3), {.trainable = false});
  Output x = ops::placeholder(root, kInt64, {}, "x");
  Output add_x = ops::assign_add(root, counter, x, "add_x");
  ScriptedSession session{graph};
};

TEST_F(ScriptedSessionTest, VariablesLiveAcrossRuns) {
  EXPECT_THROW(session.run(counter), FailedPreconditionError);
  session.run(counter.initializer());
  session.run(add_x, {{x, Tensor::scalar<int64_t>(4)}});
  EXPECT_EQ(session.run(counter).item<int64_t>(), 7);
  EXPECT_EQ(session.runs(), 4);
}

TEST_F(ScriptedSessionTest, ACountEndsAtItsLimit) {
  const Output count = ops::count_up_to(root, counter, 4);
  session.run(counter.initializer());
  EXPECT_EQ(session.run(count).item<int64_t>(), 3);
  EXPECT_THROW(session.run(count), OutOfRangeError);
}

TEST_F(ScriptedSessionTest, AStepFetchWaitsForAStepThatFeedsIt) {
  const Output plus = ops::identity(root, x);
  std::vector<Tensor> seen;
  session.run(counter.initializer());
  session.capabilities().step_fetching->request_step_fetch(
      {{plus}, [&](std::vector<Tensor> values, std::exception_ptr) { seen = values; }});
  session.run(counter);
  session.run(counter.initializer());
  EXPECT_TRUE(session.step_fetch_pending());
  session.run(add_x, {{x, Tensor::scalar<int64_t>(4)}});
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].item<int64_t>(), 4);
  EXPECT_FALSE(session.step_fetch_pending());
}

TEST_F(ScriptedSessionTest, HasStepFetchesAloneBesideItsRuns) {
  const SessionCapabilities capabilities = session.capabilities();
  EXPECT_NE(capabilities.step_fetching, nullptr);
  EXPECT_EQ(capabilities.step_watching, nullptr);
  EXPECT_EQ(capabilities.snapshot_keeping, nullptr);
}

TEST_F(ScriptedSessionTest, PlainSnapshotsStandInForThoseThatASessionDoesNotKeep) {
  session.run(counter.initializer());
  const std::shared_ptr<Snapshots> snapshots = snapshots_of(session);
  EXPECT_EQ(snapshots->take(session, {counter})[0].item<int64_t>(), 3);
  EXPECT_EQ(session.snapshot_runs(), 1);
  EXPECT_EQ(snapshots->bytes_free(), 0u);
}

TEST_F(ScriptedSessionTest, ACapabilityThatIsRequiredAndLackingIsAnErrorWithTheCallersText) {
  EXPECT_EQ(&required_capability(session.capabilities().step_fetching, "not thrown"),
            session.capabilities().step_fetching);
  try {
    required_capability(session.capabilities().step_watching, "an_option: leave it at 0");
    FAIL() << "nothing was thrown";
  } catch (const UnimplementedError& error) {
    EXPECT_STREQ(error.what(), "an_option: leave it at 0");
  }
}

TEST_F(ScriptedSessionTest, TheHookCanFailARun) {
  session.before_each_run([](int run, const Session::Request&) {
    if (run == 1) throw AbortedError("second");
  });
  session.run(counter.initializer());
  EXPECT_THROW(session.run(counter), AbortedError);
  EXPECT_EQ(session.run(counter).item<int64_t>(), 3);
}

TEST_F(ScriptedSessionTest, AClosedSessionRefusesRuns) {
  session.close();
  EXPECT_THROW(session.run(counter), FailedPreconditionError);
}

TEST_F(ScriptedSessionTest, TracesHaveMadeUpTimes) {
  proto::RunMetadata metadata;
  session.run(counter.initializer());
  session.run(add_x, {{x, Tensor::scalar<int64_t>(4)}}, {.trace_level = TraceLevel::kFullTrace}, &metadata);
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  const proto::DeviceStepStats& device = metadata.step_stats().dev_stats(0);
  EXPECT_EQ(device.device(), "/job:localhost/replica:0/task:0/device:CPU:0");
  ASSERT_EQ(device.node_stats_size(), 1);
  const proto::NodeExecStats& node = device.node_stats(0);
  EXPECT_EQ(node.node_name(), "add_x");
  EXPECT_EQ(node.timeline_label(), "add_x = AssignAdd(counter, x)");
  EXPECT_EQ(node.all_start_micros(), 1'600'000'001'000'000) << "run number 1";
  EXPECT_EQ(node.all_end_rel_micros(), 10);
}

TEST_F(ScriptedSessionTest, ANumberOfATraceLevelIsTensorFlows) {
  EXPECT_EQ(static_cast<int>(TraceLevel::kNoTrace), proto::RunOptions::NO_TRACE);
  EXPECT_EQ(static_cast<int>(TraceLevel::kSoftwareTrace), proto::RunOptions::SOFTWARE_TRACE);
  EXPECT_EQ(static_cast<int>(TraceLevel::kHardwareTrace), proto::RunOptions::HARDWARE_TRACE);
  EXPECT_EQ(static_cast<int>(TraceLevel::kFullTrace), proto::RunOptions::FULL_TRACE);
}

}  // namespace
}  // namespace longhaul::testing
