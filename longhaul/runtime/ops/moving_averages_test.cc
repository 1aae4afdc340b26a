#include "longhaul/ops/training/moving_averages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

class MovingAverageTest : public ::testing::Test {
 protected:
  // Adds one to the variable, then moves the averages.
  Operation step_of(ExponentialMovingAverage& averages, const Variable& variable) {
    const Output one = ops::cast(root_, ops::constant(root_, 1.0), variable.dtype());
    const Operation add = ops::assign_add(root_, variable, one).op();
    return averages.apply(root_.with_control_dependencies({add}), {variable});
  }
  std::unique_ptr<Session> initialized_session() {
    auto session = new_session("", graph_);
    session->run(ops::global_variables_initializer(root_));
    return session;
  }
  double number(Session& session, const Output& output) {
    return session.run(ops::cast(root_, output, kDouble)).item<double>();
  }

  Graph graph_;
  Scope root_{graph_};
  Variable w_ = ops::variable(root_, "w", Tensor::scalar(10.0));
};

TEST_F(MovingAverageTest, StartsAsTheVariableAndFollowsIt) {
  ExponentialMovingAverage averages(0.75);
  const Operation step = step_of(averages, w_);
  const Variable shadow = *averages.average(w_);
  auto session = initialized_session();
  EXPECT_EQ(number(*session, shadow), 10);
  session->run(step);
  EXPECT_EQ(number(*session, shadow), 10.25);  // 10 - (10 - 11) / 4
  session->run(step);
  EXPECT_EQ(number(*session, shadow), 10.6875);
}

TEST_F(MovingAverageTest, IsSavedButNotTrained) {
  ExponentialMovingAverage averages(0.5);
  averages.apply(root_, {w_});
  const Variable shadow = *averages.average(w_);
  EXPECT_EQ(shadow.name(), "w/ExponentialMovingAverage");
  EXPECT_EQ(averages.average_name(w_), shadow.name());
  EXPECT_EQ(ops::global_variables(graph_).size(), 2u);
  EXPECT_EQ(ops::trainable_variables(graph_).size(), 1u);
  EXPECT_THAT(graph_.collection_of<VariableInfo>(collections::kMovingAverageVariables), ElementsAre(w_.info()));
}

TEST_F(MovingAverageTest, IsNamedAfterVariableScopesAlone) {
  const Output loss = ops::mul(root_, w_, 2.0, "loss");
  const Scope scope = root_.sub("outer").variable_scope("avg");
  ExponentialMovingAverage averages(0.5, {.zero_debias = true});
  EXPECT_EQ(averages.average_name(scope, w_), "avg/w/ExponentialMovingAverage");
  averages.apply(scope, {w_});
  averages.apply_to_tensors(scope, {loss});
  EXPECT_EQ(averages.average(w_)->name(), "avg/w/ExponentialMovingAverage");
  EXPECT_EQ(averages.average_name(w_), "avg/w/ExponentialMovingAverage");
  EXPECT_EQ(averages.average(loss)->name(), "avg/loss/ExponentialMovingAverage");
  EXPECT_TRUE(graph_.find_operation("avg/avg/loss/ExponentialMovingAverage/biased").valid());

  ExponentialMovingAverage others(0.5);
  others.apply(root_.sub("avg"), {w_});
  EXPECT_EQ(others.average(w_)->name(), "w/ExponentialMovingAverage");
}

TEST_F(MovingAverageTest, WithoutAListIsOfAllTrainableVariables) {
  const Variable fixed = ops::variable(root_, "fixed", Tensor::scalar(1.0), {.trainable = false});
  ExponentialMovingAverage averages(0.5, {.name = "Slow"});
  averages.apply(root_);
  EXPECT_EQ(averages.average(w_)->name(), "w/Slow");
  EXPECT_FALSE(averages.average(fixed).has_value());
}

TEST_F(MovingAverageTest, MovesFasterAtTheBeginningIfItIsToldTheStep) {
  const Variable count = ops::global_step(root_);
  ExponentialMovingAverage averages(0.25, {.num_updates = count});
  const Operation add = ops::assign_add(root_, w_, ops::constant(root_, 1.0)).op();
  const Operation counted = ops::assign_add(root_, count, ops::constant(root_, int64_t{1})).op();
  const Operation step = averages.apply(root_.with_control_dependencies({add, counted}), {w_});
  auto session = initialized_session();
  double expected = 10;
  for (int n = 0; n < 5; ++n) {
    session->run(step);
    const float decay = std::min(0.25f, static_cast<float>(1 + n) / static_cast<float>(10 + n));
    expected -= static_cast<double>(1 - decay) * (expected - (11 + n));
    EXPECT_THAT(number(*session, *averages.average(w_)), DoubleNear(expected, 1e-12)) << n;
  }
}

TEST_F(MovingAverageTest, MovesByAFloatAsInTensorFlow) {  // 1.15.5 has these digits after the first step from 1 to 2
  const Variable v = ops::variable(root_, "v", Tensor::scalar(1.0));
  ExponentialMovingAverage averages(0.999);
  const Operation set = ops::assign(root_, v, ops::constant(root_, 2.0)).op();
  const Operation step = averages.apply(root_.with_control_dependencies({set}), {v});
  auto session = initialized_session();
  session->run(step);
  EXPECT_EQ(number(*session, *averages.average(v)), 1.0009999871253967);
}

TEST_F(MovingAverageTest, TheDecayMayBeATensor) {
  const Output decay = ops::placeholder(root_, kFloat, {}, "decay");
  ExponentialMovingAverage averages(decay);
  const Operation step = step_of(averages, w_);
  auto session = initialized_session();
  session->run(step, {{decay, Tensor::scalar(0.75f)}});
  EXPECT_EQ(number(*session, *averages.average(w_)), 10.25);
  session->run(step, {{decay, Tensor::scalar(0.f)}});
  EXPECT_EQ(number(*session, *averages.average(w_)), 12);
}

TEST_F(MovingAverageTest, HalvesHaveOneToo) {
  const Output start = ops::cast(root_, ops::constant(root_, 10.0), kHalf);
  const Variable half = ops::variable(root_, "half", start);
  ExponentialMovingAverage averages(0.75);
  const Operation step = step_of(averages, half);
  auto session = initialized_session();
  session->run(step);
  EXPECT_EQ(averages.average(half)->dtype(), kHalf);
  EXPECT_EQ(number(*session, *averages.average(half)), 10.25);
}

TEST_F(MovingAverageTest, OfATensorStartsWithZero) {
  const Output loss = ops::mul(root_, w_, 2.0);
  ExponentialMovingAverage averages(0.75);
  const Operation update = averages.apply_to_tensors(root_, {loss});
  auto session = initialized_session();
  session->run(update);
  EXPECT_EQ(number(*session, *averages.average(loss)), 5);
  session->run(update);
  EXPECT_EQ(number(*session, *averages.average(loss)), 8.75);
}

TEST_F(MovingAverageTest, OfATensorIsRidOfItsBias) {
  const Output loss = ops::placeholder(root_, kFloat, {2}, "loss");
  ExponentialMovingAverage averages(0.75, {.zero_debias = true});
  const Operation update = averages.apply_to_tensors(root_, {loss});
  auto session = initialized_session();
  std::vector<double> biased = {0, 0};
  for (int n = 1; n <= 4; ++n) {
    const std::vector<float> fed = {20.f, 1.f * n};
    session->run(update, {{loss, Tensor::of(fed)}});
    const Tensor value = session->run(*averages.average(loss));
    for (size_t i = 0; i < 2; ++i) {
      biased[i] -= 0.25 * (biased[i] - fed[i]);
      EXPECT_NEAR(value.flat<float>()[i], biased[i] / (1 - std::pow(0.75, n)), 1e-5) << n;
    }
  }
  EXPECT_EQ(session->run("loss/ExponentialMovingAverage/local_step:0").item<float>(), 4);
}

TEST_F(MovingAverageTest, IsMadeOnce) {
  const Output loss = ops::mul(root_, w_, 2.0, "loss");
  ExponentialMovingAverage averages(0.5);
  averages.apply(root_, {w_});
  averages.apply_to_tensors(root_, {loss});
  EXPECT_EQ(refusal_of([&] { averages.apply(root_); }), "Moving average already computed for: w:0");
  EXPECT_EQ(refusal_of([&] { averages.apply_to_tensors(root_, {loss}); }),
            "Moving average already computed for: loss:0");
}

TEST_F(MovingAverageTest, OfATensorNeedsItsShape) {
  const Output some = ops::placeholder(root_, kFloat, {-1}, "some");
  ExponentialMovingAverage averages(0.5);
  EXPECT_THROW(averages.apply_to_tensors(root_, {some}), InvalidArgumentError);
}

// With a decay of one half the average of 1, 2, ..., n is n - 1 + 2^-n, if it starts with 0.
TEST_F(MovingAverageTest, IsWrittenInTheSameStepAsItsVariable) {
  const Variable count = ops::variable(root_, "count", Tensor::scalar(0.0));
  ExponentialMovingAverage averages(0.5);
  const Operation step = step_of(averages, count);
  auto session = initialized_session();
  constexpr int kSteps = 1000;
  std::thread training([&] {
    for (int i = 0; i < kSteps; ++i) session->run(step);
  });
  double n = 0;
  while (n < kSteps) {
    const auto values = session->run({Fetch(count), Fetch(*averages.average(count))}, {}, {.snapshot = true});
    n = values[0].item<double>();
    EXPECT_EQ(values[1].item<double>(), n == 0 ? 0 : n - 1 + std::exp2(-n));
  }
  training.join();
}

// A model with or without averages, and a saver for all that it has.
struct AveragedModel {
  explicit AveragedModel(int parts) {
    const Tensor start = Tensor::of<float>({6, 2}, std::vector<float>(12, 1.f));
    table = ops::partitioned_variable(root, "table", start, {.parts = parts});
    bias = ops::variable(root, "bias", Tensor::scalar(1.f));
    step = ops::global_step(root);
  }
  std::unique_ptr<Session> initialized_session() {
    auto session = new_session("", graph);
    session->run(ops::global_variables_initializer(root));
    return session;
  }
  Graph graph;
  Scope root{graph};
  PartitionedVariable table;
  Variable bias, step;
};

TEST(MovingAverages, AreRestoredIntoThePlainVariables) {
  const testing::TemporaryDirectory directory;
  AveragedModel trained(2), plain(3);
  const Output loss =
      ops::sum(trained.root, trained.table[0]) + ops::sum(trained.root, trained.table[1]) + trained.bias;
  const Operation train = GradientDescentOptimizer(1).minimize(loss, trained.step);
  ExponentialMovingAverage averages(0.75);
  const Operation step = averages.apply(trained.root.with_control_dependencies({train}));
  auto session = trained.initialized_session();
  session->run(step);
  Saver({.graph = &trained.graph}).save(*session, directory.file("model"));

  const auto names = ExponentialMovingAverage(0.75).variables_to_restore(plain.graph);
  auto other = plain.initialized_session();
  Saver({.graph = &plain.graph, .var_list = save_entries(names)}).restore(*other, directory.file("model"));
  EXPECT_EQ(other->run(plain.bias).item<float>(), 0.75);
  EXPECT_EQ(other->run(plain.step).item<int64_t>(), 1);
  for (const Variable& part : plain.table.parts())
    EXPECT_THAT(other->run(part).flat<float>(), ::testing::Each(0.75)) << part.name();
}

TEST(MovingAverages, OfTheSameGraphAreLeftOutOfWhatIsRestored) {
  AveragedModel model(1);
  ExponentialMovingAverage averages(0.75);
  averages.apply(model.root);
  std::vector<std::string> names;
  for (const auto& [name, variables] : averages.variables_to_restore(model.graph))
    names.push_back(name + " " + variables[0].name());
  EXPECT_THAT(names, ElementsAre("bias/ExponentialMovingAverage bias", "global_step global_step",
                                 "table/ExponentialMovingAverage table/part_0"));
}

}  // namespace
}  // namespace longhaul
