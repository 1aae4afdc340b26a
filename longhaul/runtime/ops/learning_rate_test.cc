#include "longhaul/ops/training/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

class LearningRateTest : public ::testing::Test {
 protected:
  std::vector<float> rates(const Output& rate, const std::vector<int64_t>& steps) {
    EXPECT_EQ(rate.dtype(), kFloat);
    EXPECT_EQ(rate.shape(), Shape{});
    auto session = new_session("", graph_);
    std::vector<float> found;
    for (int64_t step : steps) found.push_back(session->run(rate, {{step_, Tensor::scalar(step)}}).item<float>());
    return found;
  }
  static auto near(std::vector<float> values) { return Pointwise(FloatNear(1e-8f), std::move(values)); }

  Graph graph_;
  Scope root_{graph_};
  Output step_ = ops::placeholder(root_, kInt64, {}, "step");
};

TEST_F(LearningRateTest, DecaysExponentially) {
  EXPECT_THAT(rates(ops::exponential_decay(root_, 0.1, step_, 100, 0.5), {0, 50, 100, 250}),
              near({0.1f, 0.0707106781f, 0.05f, 0.0176776695f}));
  EXPECT_THAT(rates(ops::exponential_decay(root_, 0.1, step_, 100, 0.5, true), {0, 99, 100, 250}),
              near({0.1f, 0.1f, 0.05f, 0.025f}));
}

TEST_F(LearningRateTest, IsConstantInPiecesThatEndWithTheirBoundary) {
  const Output rate = ops::piecewise_constant(root_, step_, {10, 20}, {1, 0.5, 0.25});
  EXPECT_THAT(rates(rate, {0, 10, 11, 20, 21, 1000}), ElementsAre(1, 1, 0.5, 0.5, 0.25, 0.25));
  EXPECT_THAT(rates(ops::piecewise_constant(root_, step_, {}, {3}), {0, 7}), ElementsAre(3, 3));
}

TEST_F(LearningRateTest, DecaysAsAPolynomialToItsEnd) {
  EXPECT_THAT(rates(ops::polynomial_decay(root_, 0.1, step_, 100, 0.01, 2), {0, 50, 100, 150}),
              near({0.1f, 0.0325f, 0.01f, 0.01f}));
  EXPECT_THAT(rates(ops::polynomial_decay(root_, 1, step_, 100), {25}), near({0.750025f}));
}

TEST_F(LearningRateTest, DecaysAsAPolynomialAgainAndAgain) {
  const Output rate = ops::polynomial_decay(root_, 0.1, step_, 100, 0.01, 2, true);
  EXPECT_THAT(rates(rate, {0, 50, 100, 101, 150, 200, 250}),
              near({0.1f, 0.0325f, 0.01f, 0.03205225f, 0.015625f, 0.01f, 0.0125f}));
}

TEST_F(LearningRateTest, DecaysWithTheInverseOfTime) {
  EXPECT_THAT(rates(ops::inverse_time_decay(root_, 0.1, step_, 100, 0.5), {0, 50, 100, 250}),
              near({0.1f, 0.08f, 0.0666666667f, 0.0444444444f}));
  EXPECT_THAT(rates(ops::inverse_time_decay(root_, 0.1, step_, 100, 0.5, true), {0, 99, 100, 250}),
              near({0.1f, 0.1f, 0.0666666667f, 0.05f}));
}

TEST_F(LearningRateTest, DecaysWithPowersOfE) {
  EXPECT_THAT(rates(ops::natural_exp_decay(root_, 0.1, step_, 100, 0.5), {0, 50, 100, 250}),
              near({0.1f, 0.0778800783f, 0.060653066f, 0.0286504797f}));
  EXPECT_THAT(rates(ops::natural_exp_decay(root_, 0.1, step_, 100, 0.5, true), {0, 99, 100, 250}),
              near({0.1f, 0.1f, 0.060653066f, 0.0367879441f}));
}

TEST_F(LearningRateTest, DecaysAsACosine) {
  EXPECT_THAT(rates(ops::cosine_decay(root_, 0.1, step_, 100, 0.2), {0, 25, 50, 100, 150}),
              near({0.1f, 0.0882842712f, 0.06f, 0.02f, 0.02f}));
}

TEST_F(LearningRateTest, RestartsInEverLongerCycles) {
  const Output rate = ops::cosine_decay_restarts(root_, 0.1, step_, 100, 2, 0.5, 0.1);
  EXPECT_THAT(rates(rate, {0, 50, 99, 100, 200, 299, 300, 500, 700}),
              near({0.1f, 0.055f, 0.0100222048f, 0.055f, 0.0325f, 0.0100027758f, 0.0325f, 0.02125f, 0.02125f}));
}

TEST_F(LearningRateTest, RestartsInCyclesOfTheSameLength) {
  EXPECT_THAT(rates(ops::cosine_decay_restarts(root_, 0.1, step_, 100, 1), {0, 50, 100, 150, 199, 200}),
              near({0.1f, 0.05f, 0.1f, 0.05f, 2.46719817e-05f, 0.1f}));
}

// Logarithms tell which cycle it is; log(125) / log(5) is a little more or less than 3.
TEST_F(LearningRateTest, RestartsOnTimeHoweverLogarithmsAreRounded) {
  for (int64_t t_mul = 2; t_mul <= 12; ++t_mul) {
    std::vector<int64_t> begins = {0};
    while (begins.size() < 7) begins.push_back(begins.back() * t_mul + 1);
    const Output rate = ops::cosine_decay_restarts(root_, 1, step_, 1, static_cast<double>(t_mul));
    EXPECT_THAT(rates(rate, begins), ::testing::Each(1)) << t_mul;
  }
}

TEST_F(LearningRateTest, WarmsUpIntoAnotherSchedule) {
  const Output decay = ops::exponential_decay(root_, 0.1, step_, 100, 0.5);
  EXPECT_THAT(rates(ops::linear_warmup(root_, decay, step_, 50), {0, 25, 50, 100}),
              near({0, 0.042044821f, 0.0707106781f, 0.05f}));
  EXPECT_THAT(rates(ops::linear_warmup(root_, 0.1, step_, 50, 0.25), {0, 25, 50, 100}),
              near({0.025f, 0.0625f, 0.1f, 0.1f}));
}

// A float has no 2^24 + 1.
TEST_F(LearningRateTest, TellsLargeStepsApart) {
  const Output rate = ops::exponential_decay(root_, 1, step_, 16'777'217, 0.5, true);
  EXPECT_THAT(rates(rate, {16'777'216, 16'777'217}), ElementsAre(1, 0.5));
}

TEST_F(LearningRateTest, TheStepMayBeOfAnyKindOfNumber) {
  for (const Output& step : {ops::constant(root_, int32_t{11}), ops::constant(root_, 10.5f)})
    EXPECT_THAT(rates(ops::piecewise_constant(root_, step, {10, 20}, {1, 0.5, 0.25}), {0}), ElementsAre(0.5));
  EXPECT_THAT(rates(ops::polynomial_decay(root_, 1, ops::constant(root_, 5.0f), 10, 0), {0}), ElementsAre(0.5));
}

}  // namespace
}  // namespace longhaul
