// Schedules, clipping, averages and regularizers in one training, and the regularizers by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class RegularizerTest : public ::testing::Test {
 protected:
  double run(const Output& output) {
    auto session = new_session("", graph_);
    session->run(ops::global_variables_initializer(root_));
    return session->run(ops::cast(root_, output, kDouble)).item<double>();
  }

  Graph graph_;
  Scope root_{graph_};
  Variable w_ = ops::variable(root_, "w", Tensor::of<double>({1, -2, 3}));
  Variable v_ = ops::variable(root_, "v", Tensor::scalar(-4.0));
};

TEST_F(RegularizerTest, AreTheirFormulas) {
  EXPECT_DOUBLE_EQ(run(ops::l1_regularizer(0.5)(root_, w_)), 3);
  EXPECT_DOUBLE_EQ(run(ops::l2_regularizer(0.5)(root_, w_)), 3.5);
  EXPECT_DOUBLE_EQ(run(ops::l1_l2_regularizer(0.5, 2)(root_, w_)), 17);
  EXPECT_DOUBLE_EQ(run(ops::sum_regularizer({ops::l1_regularizer(1), ops::l1_regularizer(2)})(root_, w_)), 18);
}

TEST_F(RegularizerTest, OfScaleZeroCostNothing) {
  EXPECT_FALSE(ops::l1_regularizer(0)(root_, w_).valid());
  EXPECT_FALSE(ops::l1_l2_regularizer(0, 0)(root_, w_).valid());
  EXPECT_DOUBLE_EQ(run(ops::l1_l2_regularizer(0, 2)(root_, w_)), 14);
  EXPECT_EQ(run(ops::apply_regularization(root_, ops::l2_regularizer(0), {w_, v_})), 0);
}

TEST_F(RegularizerTest, AreAddedUpOverWeightsAndCalls) {
  EXPECT_DOUBLE_EQ(run(ops::apply_regularization(root_, ops::l2_regularizer(1), {w_, v_})), 15);
  ops::apply_regularization(root_, ops::l1_regularizer(0.5), {v_});
  EXPECT_EQ(ops::get_regularization_losses(graph_).size(), 2u);
  EXPECT_DOUBLE_EQ(run(ops::get_regularization_loss(root_)), 17);
  EXPECT_EQ(run(ops::get_regularization_loss(Scope(graph_).sub("again"))), 17);
}

TEST_F(RegularizerTest, ACostThatIsNoScalarIsRefused) {
  const auto each = [](const Scope& scope, const Output& weights) { return ops::abs(scope, weights, "each"); };
  try {
    ops::apply_regularization(root_, each, {w_});
    FAIL() << "no error";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("each:0 is [3]"));
  }
}

TEST_F(RegularizerTest, TheTotalLossHasThemAll) {
  ops::add_loss(ops::constant(root_, 5.0));
  EXPECT_EQ(run(ops::get_total_loss(root_)), 5);
  ops::add_loss(ops::constant(root_, 7.0));
  ops::apply_regularization(root_, ops::l1_regularizer(0.5), {v_});
  EXPECT_EQ(run(ops::get_total_loss(root_)), 14);
  EXPECT_EQ(run(ops::get_total_loss(root_, false)), 12);
}

TEST_F(RegularizerTest, GradientsPassThrough) {
  ops::apply_regularization(root_, ops::l1_l2_regularizer(0.5, 2), {w_, v_});
  const Output gradient = ops::gradients(root_, {ops::get_total_loss(root_)}, {w_.ref()})[0];
  auto session = new_session("", graph_);
  session->run(ops::global_variables_initializer(root_));
  EXPECT_THAT(session->run(gradient).flat<double>(), ElementsAre(2.5, -4.5, 6.5));
}

constexpr std::array<double, 3> kTarget = {3, -2, 0.5};

// Finds the target by steps that are warmed up, decay and are clipped; two of the weights are in one variable.
struct Training {
  Training() {
    const Variable step = ops::global_step(root);
    const Output both = ops::constant(root, Tensor::of<double>({kTarget[0], kTarget[1]}));
    ops::add_loss(ops::sum(root, ops::square(root, ops::sub(root, pair, both))));
    ops::add_loss(ops::square(root, ops::sub(root, one, kTarget[2])));
    ops::apply_regularization(root, ops::l2_regularizer(0.25), {pair, one});
    const Output rate = ops::linear_warmup(root, ops::exponential_decay(root, 0.5, step, 8, 0.5), step, 4, 0.25);
    GradientDescentOptimizer optimizer(rate);
    auto [gradients, norm] =
        ops::clip_by_global_norm(root, optimizer.compute_gradients(root, ops::get_total_loss(root)), 2);
    const Operation train = optimizer.apply_gradients(root, gradients, step);
    averages = std::make_unique<ExponentialMovingAverage>(0.6, MovingAverageOptions{.num_updates = step});
    train_op = averages->apply(root.with_control_dependencies({train}));
    saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
    session = new_session("", graph);
    session->run(ops::global_variables_initializer(root));
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) session->run(train_op);
  }
  // The weights and their averages.
  std::vector<double> state() {
    std::vector<double> all;
    for (const Variable& variable : {pair, one, *averages->average(pair), *averages->average(one)}) {
      const Tensor value = session->run(variable);
      all.insert(all.end(), value.flat<double>().begin(), value.flat<double>().end());
    }
    return all;
  }

  Graph graph;
  Scope root{graph};
  Variable pair = ops::variable(root, "pair", Tensor::of<double>({0, 0}));
  Variable one = ops::variable(root, "one", Tensor::scalar(0.0));
  Operation train_op;
  std::unique_ptr<ExponentialMovingAverage> averages;
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Session> session;
};

// The same by hand.
std::vector<double> state_after(int steps) {
  std::vector<double> w(3), average(3), gradient(3);
  for (int n = 0; n < steps; ++n) {
    double squares = 0;
    for (size_t i = 0; i < 3; ++i) {
      gradient[i] = 2 * (w[i] - kTarget[i]) + 0.25 * w[i];
      squares += gradient[i] * gradient[i];
    }
    const double rate = 0.5 * std::pow(0.5, n / 8.0) * (0.25 + 0.75 * std::min(n / 4.0, 1.0));
    const double decay = std::min(0.6, (1.0 + n) / (10.0 + n));
    for (size_t i = 0; i < 3; ++i) {
      w[i] -= rate * gradient[i] * 2 / std::max(std::sqrt(squares), 2.0);
      average[i] -= (1 - decay) * (average[i] - w[i]);
    }
  }
  w.insert(w.end(), average.begin(), average.end());
  return w;
}

TEST(TrainingHelpers, TogetherAreTheirFormulas) {
  Training training;
  training.steps(20);
  EXPECT_THAT(training.state(), Pointwise(DoubleNear(1e-6), state_after(20)));
}

TEST(TrainingHelpers, GoOnFromACheckpointAsIfNothingHadHappened) {
  const testing::TemporaryDirectory directory;
  Training through, first, second;
  through.steps(12);
  first.steps(5);
  first.saver->save(*first.session, directory.file("model"));
  second.saver->restore(*second.session, directory.file("model"));
  second.steps(7);
  EXPECT_EQ(second.state(), through.state());
}

TEST(TrainingHelpers, AveragesAreRestoredInPlaceOfTheWeights) {
  const testing::TemporaryDirectory directory;
  Training training;
  training.steps(6);
  training.saver->save(*training.session, directory.file("model"));
  const std::vector<double> state = training.state();
  const auto names = training.averages->variables_to_restore(training.graph);
  Saver({.graph = &training.graph, .var_list = save_entries(names), .name = "averages"})
      .restore(*training.session, directory.file("model"));
  EXPECT_THAT(training.session->run(training.pair).flat<double>(), ElementsAre(state[3], state[4]));
  EXPECT_EQ(training.session->run(training.one).item<double>(), state[5]);
}

}  // namespace
}  // namespace longhaul
