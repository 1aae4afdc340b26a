#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/aten/aten_tensor.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/plan/plan_builder.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 301, kColumns = 701;  // several pieces, and a rest that no vector fills

Tensor filled(float value) {
  Tensor tensor(kFloat, {kRows, kColumns});
  for (float& element : tensor.mutable_flat<float>()) element = value;
  return tensor;
}

// Different everywhere, the same in each call.
Tensor various(float scale) {
  Tensor tensor(kFloat, {kRows, kColumns});
  float value = 0;
  for (float& element : tensor.mutable_flat<float>()) element = scale * (value = value > 3 ? -2.f : value + 0.37f);
  return tensor;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class AssignInPlaceTest : public ::testing::Test {
 protected:
  void TearDown() override { at::set_num_threads(threads_); }

  Variable variable(const std::string& name, Tensor initial) { return ops::variable(root_, name, std::move(initial)); }

  DirectSession& session() {
    if (!session_) {
      session_ = std::make_unique<DirectSession>(graph_, SessionOptions{});
      session_->run(ops::global_variables_initializer(root_));
    }
    return *session_;
  }
  VariableSlot& slot(const Variable& variable) { return *session().resources().variables().slot(variable.name()); }
  const void* place(const Variable& variable) { return slot(variable).read().tensor.data_ptr(); }
  float first(const Output& output) { return session().run(output).flat<float>()[0]; }

  // The number of instructions of a run that does more than read variables and constants.
  size_t instructions(const Operation& op, const std::vector<Output>& feeds = {}) {
    Session::Request request{.feeds = feeds};
    request.fetches.push_back(Fetch(op).resolve(graph_));
    const PlanParts parts = PlanBuilder(request, *std::make_shared<SessionState>()).build();
    return parts.instructions.size() - parts.end_of_reads;
  }

  const int threads_ = at::get_num_threads();
  Graph graph_;
  Scope root_{graph_};
  std::unique_ptr<DirectSession> session_;
};

TEST_F(AssignInPlaceTest, AnExpressionIsWrittenOverTheVariable) {
  const Variable w = variable("w", filled(1));
  const Operation step = ops::assign(root_, w, w * 0.5).op();
  EXPECT_EQ(instructions(step), 1u);
  session();
  const void* before = place(w);
  for (int i = 0; i < 3; ++i) session().run(step);
  EXPECT_EQ(place(w), before);
  EXPECT_EQ(slot(w).copies(), 0);
  EXPECT_EQ(first(w), 0.125f);
}

TEST_F(AssignInPlaceTest, TheBytesAreThoseOfLibtorchsOperators) {
  for (const int threads : {1, 2, 3}) {
    Graph graph;
    const Scope root(graph);
    const Tensor start = various(1), other = various(0.71f), rate = Tensor::scalar(0.037f);
    const Variable w = ops::variable(root, "w", start), v = ops::variable(root, "v", start);
    const Output x = ops::placeholder(root, kFloat, start.shape(), "x"), r = ops::placeholder(root, kFloat, {}, "r");
    const Operation set = ops::assign(root, w, ops::sub(root, w, ops::mul(root, x, r))).op();
    const Operation square = ops::assign(root, v, ops::mul(root, v, v)).op();
    DirectSession session(graph, {});
    at::set_num_threads(threads);
    session.run(ops::global_variables_initializer(root));
    session.run(std::vector<Fetch>{set, square}, {{x, other}, {r, rate}});
    at::set_num_threads(1);
    const at::Tensor a = to_aten(start), b = to_aten(other), c = to_aten(rate);
    EXPECT_TRUE(same_bytes(session.run(w), to_tensor(at::sub(a, b * c)))) << threads;
    EXPECT_TRUE(same_bytes(session.run(v), to_tensor(a * a))) << threads;
    EXPECT_TRUE(same_bytes(other, various(0.71f))) << "a feed was written";
  }
}

TEST_F(AssignInPlaceTest, WhatWasReadBeforeKeepsItsValue) {
  const Variable w = variable("w", filled(8));
  const Output assigned = ops::assign(root_, w, w * 0.5);
  const Tensor held = session().run(w);
  const std::vector<Tensor> snapshot = session().run(std::vector<Fetch>{w}, {}, {.snapshot = true});
  const std::vector<Tensor> both = session().run(std::vector<Fetch>{w, assigned});
  EXPECT_TRUE(same_bytes(both[0], filled(8))) << "the value at the start of the run";
  EXPECT_TRUE(same_bytes(both[1], filled(4)));
  session().run(assigned.op());
  EXPECT_TRUE(same_bytes(held, filled(8)));
  EXPECT_TRUE(same_bytes(snapshot[0], filled(8)));
  EXPECT_TRUE(same_bytes(both[1], filled(4)));
  EXPECT_EQ(first(w), 2);
}

TEST_F(AssignInPlaceTest, AViewOfTheVariableIsNotWrittenOver) {
  Tensor rising(kFloat, {200, 200});
  float value = 0;
  for (float& element : rising.mutable_flat<float>()) element = value++;
  const Variable w = variable("w", rising);
  const Operation step = ops::assign(root_, w, ops::add(root_, w, ops::transpose(root_, w, 0, 1))).op();
  for (int i = 0; i < 2; ++i) session().run(step);
  const Tensor sum = session().run(w);
  for (int64_t i = 0; i < 200; ++i) {
    for (int64_t j = 0; j < 200; ++j)
      ASSERT_EQ(sum.flat<float>()[static_cast<size_t>(200 * i + j)], 2.f * 201 * (i + j));
  }
  EXPECT_EQ(slot(w).copies(), 0);
}

TEST_F(AssignInPlaceTest, WhatSomebodyElseTakesIsComputedBefore) {
  const Variable w = variable("w", filled(1)), v = variable("v", filled(1));
  const Output half = w * 0.5;
  const Operation both =
      ops::group(root_, {ops::assign(root_, w, half).op(), ops::assign(root_, v, half).op()}, "both");
  EXPECT_EQ(instructions(both), 3u);
  session().run(both);
  EXPECT_EQ(first(w), 0.5f);
  EXPECT_EQ(first(v), 0.5f);
  const Output quarter = w * 0.25;
  const Output assigned = ops::assign(root_, w, quarter);
  const std::vector<Tensor> results = session().run(std::vector<Fetch>{quarter, assigned});
  EXPECT_EQ(results[0].flat<float>()[0], 0.125f);
  EXPECT_TRUE(same_bytes(results[0], results[1]));
}

TEST_F(AssignInPlaceTest, WhatWaitsForTheValueIsMadeAfterIt) {
  const Variable w = variable("w", filled(1));
  const Output half = w * 0.5;
  const Output later = ops::identity(root_.with_control_dependencies({half.op()}), ops::constant(root_, 1.f));
  const Operation both = ops::group(root_, {ops::assign(root_, w, half).op(), later.op()}, "both");
  EXPECT_EQ(instructions(both), 2u);
  session().run(both);
  EXPECT_EQ(first(w), 0.5f);
}

TEST_F(AssignInPlaceTest, TwoAssignmentsOfAVariableTakeItsValueAtTheStart) {
  const Variable w = variable("w", filled(5));
  const Output tripled = w * 3.0;
  const Output one = ops::assign_add(root_, w, ops::constant(root_, filled(2)));
  session().run(ops::assign(root_.with_control_dependencies({one.op()}), w, tripled).op());
  EXPECT_EQ(first(w), 15);
}

// What the run reads of a variable must be let go before it writes that.
TEST_F(AssignInPlaceTest, AVariableThatIsWrittenBeforeIsReadBefore) {
  const Variable w = variable("w", filled(5)), v = variable("v", filled(1));
  const Output sum = ops::add(root_, v, w);
  const Output written = ops::assign(root_, w, ops::constant(root_, filled(3)));
  session().run(ops::assign(root_.with_control_dependencies({written.op()}), v, sum).op());
  EXPECT_EQ(first(w), 3);
  EXPECT_EQ(first(v), 6);
  EXPECT_EQ(slot(w).copies(), 0);
}

TEST_F(AssignInPlaceTest, AnotherVariableIsTakenAsItIs) {
  const Variable w = variable("w", filled(5)), v = variable("v", filled(1));
  const Operation step = ops::assign(root_, w, ops::sub(root_, v, w)).op();
  EXPECT_EQ(instructions(step), 1u);
  session().run(step);
  session().run(step);
  EXPECT_EQ(first(w), 5);
  EXPECT_EQ(first(v), 1);
  EXPECT_EQ(slot(w).copies() + slot(v).copies(), 0);
}

TEST_F(AssignInPlaceTest, AStepThatFailsLeavesTheVariable) {
  const Variable w = variable("w", filled(5)), never = variable("never", filled(5));
  const Operation step =
      ops::group(root_, {ops::assign(root_, w, w * 2.0).op(), ops::assign(root_, never, never * 2.0).op()}, "step");
  DirectSession session(graph_, {});
  session.run(w.initializer());
  EXPECT_THROW(session.run(step), FailedPreconditionError);
  EXPECT_TRUE(same_bytes(session.run(w), filled(5)));
  session.run(std::vector<Fetch>{w}, {}, {.snapshot = true});  // it is consistent
}

TEST_F(AssignInPlaceTest, AVariableWithoutItsDeclaredShapeIsComputedByLibtorch) {
  Tensor row(kFloat, {1, kColumns});
  for (float& element : row.mutable_flat<float>()) element = 7;
  const Variable w = variable("w", filled(5)), v = variable("v", filled(1));
  const Output any = ops::placeholder(root_, kFloat);
  const Operation to_row = root_.add("Assign", "to_row", {v.ref(), any}, {{"validate_shape", false}});
  const Operation add = ops::assign(root_, w, w + v).op(), refused = ops::assign(root_, v, v * 2.0).op();
  EXPECT_EQ(instructions(add), 1u);
  EXPECT_EQ(instructions(refused), 1u);
  session().run(to_row, {{any, row}});
  session().run(add);
  EXPECT_TRUE(same_bytes(session().run(w), filled(12)));
  try {
    session().run(refused);
    FAIL() << "the value of another shape was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Assign requires shapes of both tensors to match"));
  }
  EXPECT_TRUE(same_bytes(session().run(v), row));
}

TEST_F(AssignInPlaceTest, UpdatesOfSeveralThreadsAreAllMade) {
  constexpr int kThreads = 4, kSteps = 50;
  const Variable w = variable("w", filled(0));
  const Callable step = session().make_callable(ops::assign(root_, w, w + 1.0).op());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kSteps; ++n) step();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(same_bytes(session().run(w), filled(kThreads * kSteps)));
}

TEST_F(AssignInPlaceTest, SnapshotsNextToSeveralThreadsAreOfOneMoment) {
  const Variable w = variable("w", filled(1)), v = variable("v", filled(1));
  const Operation step =
      ops::group(root_, {ops::assign(root_, w, w + 1.0).op(), ops::assign(root_, v, v + 1.0).op()}, "step");
  const Callable train = session().make_callable(step);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 40; ++n) train();
    });
  }
  for (int i = 0; i < 40; ++i) {
    const std::vector<Tensor> held = session().run(std::vector<Fetch>{w, v}, {}, {.snapshot = true});
    EXPECT_TRUE(same_bytes(held[0], held[1]));
    EXPECT_TRUE(same_bytes(held[0], filled(held[0].flat<float>()[0])));
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(AssignInPlaceTest, AValueOfTheProgramIsAssignedByIt) {
  Tensor kept = filled(2);
  const Variable w = ops::external_variable(root_, "w",
                                            {.dtype = kFloat,
                                             .shape = kept.shape(),
                                             .read = [&] { return kept; },
                                             .assign = [&](const Tensor& value) { kept = value; }});
  session().run(ops::assign(root_, w, w * 3.0).op());
  EXPECT_TRUE(same_bytes(kept, filled(6)));
}

}  // namespace
}  // namespace longhaul
