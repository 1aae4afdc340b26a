#include "longhaul/testing/scripted_session.h"

#include <gtest/gtest.h>

#include "longhaul/ops/state_ops.h"

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
  session.fetch_with_next_step({{plus}, [&](std::vector<Tensor> values, std::exception_ptr) { seen = values; }});
  session.run(counter);
  session.run(counter.initializer());
  EXPECT_TRUE(session.step_fetch_pending());
  session.run(add_x, {{x, Tensor::scalar<int64_t>(4)}});
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].item<int64_t>(), 4);
  EXPECT_FALSE(session.step_fetch_pending());
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

}  // namespace
}  // namespace longhaul::testing
