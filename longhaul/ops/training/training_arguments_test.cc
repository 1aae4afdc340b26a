// What schedules, clipping, averages and regularizers refuse.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "longhaul/ops/training/clip_ops.h"
#include "longhaul/ops/training/learning_rate.h"
#include "longhaul/ops/training/moving_averages.h"
#include "longhaul/ops/training/regularizers.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TrainingArguments : public ::testing::Test {
 protected:
  Graph graph_;
  Scope root_{graph_};
  Output step_ = ops::placeholder(root_, kInt64, {}, "step");
  Output x_ = ops::placeholder(root_, kFloat, {2}, "x");
};

TEST_F(TrainingArguments, ADecayTakesAtLeastOneStep) {
  for (int64_t steps : {0, -5}) {
    const auto refused = "decay_steps must be above 0, not " + std::to_string(steps);
    EXPECT_EQ(refusal_of([&] { ops::exponential_decay(root_, 1, step_, steps, 0.5); }),
              "exponential_decay: " + refused);
    EXPECT_EQ(refusal_of([&] { ops::polynomial_decay(root_, 1, step_, steps); }), "polynomial_decay: " + refused);
    EXPECT_EQ(refusal_of([&] { ops::inverse_time_decay(root_, 1, step_, steps, 1); }),
              "inverse_time_decay: " + refused);
    EXPECT_EQ(refusal_of([&] { ops::natural_exp_decay(root_, 1, step_, steps, 1); }), "natural_exp_decay: " + refused);
    EXPECT_EQ(refusal_of([&] { ops::cosine_decay(root_, 1, step_, steps); }), "cosine_decay: " + refused);
    EXPECT_EQ(refusal_of([&] { ops::cosine_decay_restarts(root_, 1, step_, steps); }),
              "cosine_decay_restarts: first_" + refused);
    EXPECT_EQ(refusal_of([&] { ops::linear_warmup(root_, 1, step_, steps); }),
              "linear_warmup: warmup_steps must be above 0, not " + std::to_string(steps));
  }
}

TEST_F(TrainingArguments, ASchedulesNumbersAreInTheirRange) {
  EXPECT_EQ(refusal_of([&] { ops::exponential_decay(root_, 1, step_, 5, 0); }),
            "exponential_decay: decay_rate must be above 0, not 0");
  EXPECT_EQ(refusal_of([&] { ops::inverse_time_decay(root_, 1, step_, 5, -0.5); }),
            "inverse_time_decay: decay_rate must be 0 or above, not -0.5");
  EXPECT_EQ(refusal_of([&] { ops::polynomial_decay(root_, 1, step_, 5, 0, 0); }),
            "polynomial_decay: power must be above 0, not 0");
  EXPECT_EQ(refusal_of([&] { ops::cosine_decay_restarts(root_, 1, step_, 5, 0.5); }),
            "cosine_decay_restarts: t_mul must be 1 or above, not 0.5");
  for (double factor : {-0.5, 1.5})
    EXPECT_THAT(refusal_of([&] { ops::linear_warmup(root_, 1, step_, 5, factor); }), HasSubstr("start_factor"));
}

TEST_F(TrainingArguments, ASchedulesNumbersAreFiniteAndItsRatesNoZeroByRounding) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double rate : {nan, inf, 1e-50, 1e50}) {
    const std::string refused = ": learning_rate must be finite and within the range of a float";
    EXPECT_THAT(refusal_of([&] { ops::exponential_decay(root_, rate, step_, 5, 0.5); }), HasSubstr(refused));
    EXPECT_THAT(refusal_of([&] { ops::polynomial_decay(root_, rate, step_, 5); }), HasSubstr(refused));
    EXPECT_THAT(refusal_of([&] { ops::inverse_time_decay(root_, rate, step_, 5, 1); }), HasSubstr(refused));
    EXPECT_THAT(refusal_of([&] { ops::natural_exp_decay(root_, rate, step_, 5, 1); }), HasSubstr(refused));
    EXPECT_THAT(refusal_of([&] { ops::cosine_decay(root_, rate, step_, 5); }), HasSubstr(refused));
    EXPECT_THAT(refusal_of([&] { ops::cosine_decay_restarts(root_, rate, step_, 5); }), HasSubstr(refused));
    EXPECT_THAT(refusal_of([&] { ops::linear_warmup(root_, rate, step_, 5); }), HasSubstr(refused));
    EXPECT_THAT(refusal_of([&] { ops::piecewise_constant(root_, step_, {10}, {1, rate}); }),
                HasSubstr("values must be"));
    EXPECT_THAT(refusal_of([&] { ops::polynomial_decay(root_, 1, step_, 5, rate); }), HasSubstr("end_learning_rate"));
  }
  EXPECT_EQ(refusal_of([&] { ops::natural_exp_decay(root_, 1, step_, 5, nan); }),
            "natural_exp_decay: decay_rate must be finite, not nan");
  EXPECT_EQ(refusal_of([&] { ops::cosine_decay(root_, 1, step_, 5, inf); }),
            "cosine_decay: alpha must be finite, not inf");
}

TEST_F(TrainingArguments, BoundariesIncreaseAndAreOneLessThanTheirValues) {
  EXPECT_THAT(refusal_of([&] { ops::piecewise_constant(root_, step_, {10, 20}, {1, 2}); }),
              HasSubstr("boundaries should be 1 less than the length of values, but the lengths are 2 and 2"));
  EXPECT_THAT(refusal_of([&] { ops::piecewise_constant(root_, step_, {}, {}); }),
              HasSubstr("but the lengths are 0 and 0"));
  EXPECT_THAT(refusal_of([&] { ops::piecewise_constant(root_, step_, {10, 30, 20}, {1, 2, 3, 4}); }),
              HasSubstr("the boundaries must increase, but 20 comes after 30"));
  EXPECT_THAT(refusal_of([&] { ops::piecewise_constant(root_, step_, {10, 10}, {1, 2, 3}); }),
              HasSubstr("10 comes after 10"));
}

TEST_F(TrainingArguments, ANormIsLimitedToANumberAboveZero) {
  const std::vector<Output> list = {x_};
  for (double limit : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const std::string refused = ": clip_norm must be above 0, not ";
    EXPECT_THAT(refusal_of([&] { ops::clip_by_norm(root_, x_, limit); }), HasSubstr("clip_by_norm" + refused));
    EXPECT_THAT(refusal_of([&] { ops::clip_by_average_norm(root_, x_, limit); }),
                HasSubstr("clip_by_average_norm" + refused));
    EXPECT_THAT(refusal_of([&] { ops::clip_by_global_norm(root_, list, limit); }),
                HasSubstr("clip_by_global_norm" + refused));
  }
  EXPECT_THAT(refusal_of([&] { ops::clip_by_value(root_, x_, 2, 1); }), HasSubstr("2 is above 1"));
}

TEST_F(TrainingArguments, AGlobalNormNeedsATensor) {
  EXPECT_THAT(refusal_of([&] { ops::global_norm(root_, {Output()}); }), HasSubstr("global_norm: there are no tensors"));
}

TEST_F(TrainingArguments, ADecayOfAveragesIsInItsRange) {
  for (double decay : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(refusal_of([&] { ExponentialMovingAverage averages(decay, {.name = "Slow"}); }),
                HasSubstr("Slow: decay must be at least 0 and below 1, not "));
}

TEST_F(TrainingArguments, ADecayThatAFloatTakesForOneIsNone) {
  EXPECT_EQ(refusal_of([] { ExponentialMovingAverage averages(1 - 1e-8); }),
            "ExponentialMovingAverage: decay must be a number that does not round to 1 as a float, not 0.99999999");
  EXPECT_EQ(refusal_of([] { ExponentialMovingAverage averages(1 - 1e-7); }), "");
}

TEST_F(TrainingArguments, AveragesHaveANameAndADecayThatIsANumber) {
  EXPECT_THAT(refusal_of([] { ExponentialMovingAverage averages(0.5, {.name = ""}); }), HasSubstr("Must specify"));
  EXPECT_EQ(refusal_of([&] { ExponentialMovingAverage averages(x_); }),
            "ExponentialMovingAverage: decay must be a number, but x:0 is float of shape [2]");
}

TEST_F(TrainingArguments, AveragesAreOfVariablesOfFloats) {
  const Variable whole = ops::variable(root_, "whole", Tensor::scalar<int64_t>(1), {.trainable = false});
  ExponentialMovingAverage averages(0.5);
  EXPECT_THAT(refusal_of([&] { averages.apply(root_, {whole}); }),
              HasSubstr("must be half, float, or double: whole:0 is int64"));
  EXPECT_THAT(refusal_of([&] { averages.apply(root_); }), HasSubstr("there are no variables to average"));
}

TEST_F(TrainingArguments, AScaleIsNotBelowZero) {
  EXPECT_EQ(refusal_of([] { ops::l1_regularizer(-1); }), "l1_regularizer: scale must be 0 or above, not -1");
  EXPECT_EQ(refusal_of([] { ops::l1_l2_regularizer(1, -0.5); }), "l2_regularizer: scale must be 0 or above, not -0.5");
}

TEST_F(TrainingArguments, ThereAreWeightsToRegularize) {
  EXPECT_EQ(refusal_of([&] { ops::apply_regularization(root_, ops::l2_regularizer(1), {}); }),
            "No weights to regularize.");
}

TEST_F(TrainingArguments, AnEmptyOutputIsNoNumber) {
  EXPECT_THAT(refusal_of([] { Hyperparameter number{Output()}; }), HasSubstr("an empty Output"));
  EXPECT_THAT(refusal_of([] { Hyperparameter number{Variable()}; }), HasSubstr("an empty Output"));
}

TEST_F(TrainingArguments, ALossIsAScalar) {
  EXPECT_THAT(refusal_of([&] { ops::add_loss(x_); }), HasSubstr("a loss must be a scalar: x:0 is [2]"));
  EXPECT_THAT(refusal_of([&] { ops::get_total_loss(root_); }), HasSubstr("has no losses"));
}

TEST_F(TrainingArguments, AveragesAreRestoredByNameWhereNobodyMakesThem) {
  const Variable w = ops::variable(root_, "w", Tensor::scalar(1.f)), step = ops::create_global_step(root_);
  const ExponentialMovingAverage averages(0.5);
  EXPECT_EQ(averages.average_name(w), "w/ExponentialMovingAverage");
  std::vector<std::string> names;
  for (const auto& [name, variables] : averages.variables_to_restore(graph_)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("global_step", "w/ExponentialMovingAverage"));
  names.clear();
  for (const auto& [name, variables] : averages.variables_to_restore(graph_, {step})) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("global_step/ExponentialMovingAverage", "w"));
  names.clear();
  const Scope avg = root_.variable_scope("avg");
  for (const auto& [name, variables] : averages.variables_to_restore(avg)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("avg/w/ExponentialMovingAverage", "global_step"));
}

}  // namespace
}  // namespace longhaul
