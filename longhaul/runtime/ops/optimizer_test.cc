#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "longhaul/runtime/aten/aten_tensor.h"
#include "longhaul/runtime/ops/doubles_fixture.h"
#include "longhaul/runtime/ops/optimizer_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Doubles = std::vector<double>;

// An optimizer, and the same formula written out for one element: state is what it remembers, t counts from 1.
struct Rule {
  const char* name;
  std::function<std::unique_ptr<Optimizer>()> make;
  std::function<double(double gradient, Doubles& state, int t)> change;
  Doubles start = {0, 0};
};

// Hyperparameters are floats beside doubles, too.
constexpr double rounded(double number) {
  return static_cast<float>(number);
}
constexpr double kRate = rounded(0.1), kEpsilon = rounded(1e-3);

double momentum_change(double gradient, Doubles& state, bool nesterov) {
  state[0] = rounded(0.9) * state[0] + gradient;
  return kRate * (nesterov ? gradient + rounded(0.9) * state[0] : state[0]);
}

// As a variable of floats that is multiplied in each step.
double power(float base, int t) {
  float power = base;
  for (int i = 1; i < t; ++i) power *= base;
  return power;
}

double adam_change(double gradient, Doubles& state, int t) {
  state[0] += (1 - rounded(0.8)) * (gradient - state[0]);
  state[1] += (1 - rounded(0.95)) * (gradient * gradient - state[1]);
  return kRate * std::sqrt(1 - power(0.95f, t)) / (1 - power(0.8f, t)) * state[0] / (std::sqrt(state[1]) + kEpsilon);
}

double rmsprop_change(double gradient, Doubles& state) {
  state[0] += (1 - rounded(0.8)) * (gradient * gradient - state[0]);
  state[1] = 0.5 * state[1] + kRate * gradient / std::sqrt(state[0] + kEpsilon);
  return state[1];
}

std::vector<Rule> rules() {
  return {
      {"GradientDescent", [] { return std::make_unique<GradientDescentOptimizer>(0.1); },
       [](double gradient, Doubles&, int) { return kRate * gradient; }},
      {"Momentum", [] { return std::make_unique<MomentumOptimizer>(0.1, 0.9); },
       [](double gradient, Doubles& state, int) { return momentum_change(gradient, state, false); }},
      {"Nesterov", [] { return std::make_unique<MomentumOptimizer>(0.1, 0.9, true); },
       [](double gradient, Doubles& state, int) { return momentum_change(gradient, state, true); }},
      {"Adam", [] { return std::make_unique<AdamOptimizer>(0.1, 0.8, 0.95, 1e-3); }, adam_change},
      {"Adagrad",
       [] { return std::make_unique<AdagradOptimizer>(0.1, 0.2); },
       [](double gradient, Doubles& state, int) {
         state[0] += gradient * gradient;
         return kRate * gradient / std::sqrt(state[0]);
       },
       {0.2}},
      {"RMSProp",
       [] { return std::make_unique<RMSPropOptimizer>(0.1, 0.8, 0.5, 1e-3); },
       [](double gradient, Doubles& state, int) { return rmsprop_change(gradient, state); },
       {1, 0}},
  };
}

class RuleTest : public OptimizerTest, public ::testing::WithParamInterface<std::tuple<Rule, DType, bool>> {};

constexpr int kSteps = 4;

Tensor gradient_of_step(int step) {
  Doubles values;
  for (int i = 0; i < 6; ++i) values.push_back(std::sin(1.0 + 3 * step + i));
  return Tensor::of(Shape{2, 3}, values);
}

Doubles expected_after(const Rule& rule) {
  Doubles values = doubles(OptimizerTest::kStart);
  std::vector<Doubles> states(values.size(), rule.start);
  for (int t = 1; t <= kSteps; ++t) {
    const Doubles gradient = doubles(gradient_of_step(t));
    for (size_t i = 0; i < values.size(); ++i) values[i] -= rule.change(gradient[i], states[i], t);
  }
  return values;
}

double tolerance(DType dtype) {
  switch (dtype) {
    case kDouble: return 1e-12;
    case kFloat: return 2e-6;
    case kHalf: return 8e-3;
    default: return 6e-2;
  }
}

TEST_P(RuleTest, IsItsFormula) {
  const auto& [rule, dtype, transposed] = GetParam();
  const Variable w = variable("w", kStart, dtype);
  const Output fed = ops::placeholder(root_, kDouble, {2, 3}, "gradient");
  Output gradient = ops::cast(root_, fed, dtype);
  if (transposed) {
    // The same numbers, laid out by columns.
    const Output columns =
        ops::reshape(root_, ops::concat(root_, ops::split(root_, gradient, {1, 1, 1}, 1), 0), {3, 2});
    gradient = ops::transpose(root_, columns, 0, 1);
  }
  const Operation train = rule.make()->apply_gradients(root_, {{gradient, w}});
  const Output value = ops::cast(root_, w, kDouble);
  auto session = initialized_session();
  const Tensor held = session->run(w);
  const std::string before = held.to_string();
  for (int t = 1; t <= kSteps; ++t) session->run(train, {{fed, gradient_of_step(t)}});
  EXPECT_THAT(doubles(session->run(value)), Pointwise(DoubleNear(tolerance(dtype)), expected_after(rule)));
  EXPECT_EQ(held.to_string(), before);
}

std::string test_name(const ::testing::TestParamInfo<RuleTest::ParamType>& info) {
  const auto& [rule, dtype, transposed] = info.param;
  return std::string(rule.name) + "_" + dtype_name(dtype) + (transposed ? "_transposed" : "");
}
INSTANTIATE_TEST_SUITE_P(Optimizers, RuleTest,
                         ::testing::Combine(::testing::ValuesIn(rules()),
                                            ::testing::Values(kFloat, kDouble, kHalf, kBFloat16), ::testing::Bool()),
                         test_name);

// What TensorFlow 1.15.5 has after four steps: the variable of doubles, and the first element of each slot.
struct Genuine {
  const char* name;
  std::function<std::unique_ptr<Optimizer>()> make;
  Doubles variable;
  std::map<std::string, double> slots;  // by the variable's name
};

std::vector<Genuine> genuine() {
  const FtrlOptions regularized{.learning_rate_power = -0.7,
                                .l1_regularization_strength = 0.2,
                                .l2_regularization_strength = 0.3,
                                .l2_shrinkage_regularization_strength = 0.01};
  return {
      {"Adam",
       [] { return std::make_unique<AdamOptimizer>(0.1); },
       {1.1377647847258365, -1.8792484501531561, 3.0925421661141876, 0.35724341046966424, -0.12265825828664517,
        -1.1013966246852995},
       {{"w/Adam", -0.008900182968917647}, {"w/Adam_1", 0.0014739864529923054}}},
      {"CenteredRMSProp",
       [] { return std::make_unique<RMSPropOptimizer>(0.1, 0.8, 0.5, 1e-3, true); },
       {1.0664397525669493, -1.9369738306980091, 2.9883510395263695, 0.43724037045467179, -0.068015974223697151,
        -1.0011208818753898},
       {{"w/RMSProp", 0.60615994025994846},
        {"w/RMSProp_1", 0.0035877362704470478},
        {"w/RMSProp_2", 0.02965241953437393}}},
      {"Adadelta",
       [] { return std::make_unique<AdadeltaOptimizer>(0.1, 0.9, 1e-3); },
       {1.0019620124302393, -2.0004736807739869, 2.9964230662037874, 0.49724538174884431, 0.00022246232226402936,
        -0.99728163061814679},
       {{"w/Adadelta", 0.1210059829706895}, {"w/Adadelta_1", 0.0025588542617624647}}},
      {"Ftrl",
       [] { return std::make_unique<FtrlOptimizer>(0.1); },
       {0.65672170766938442, -1.3405571493481037, 0.75230219040560242, 0.23852656251655735, -0.034360287327033008,
        -0.40397150132192833},
       {{"w/Ftrl", 1.5768807157293738}, {"w/Ftrl_1", -8.246711212927579}}},
      {"RegularizedFtrl",
       [=] { return std::make_unique<FtrlOptimizer>(0.1, regularized); },
       {0.69861017849387574, -1.4513239621045648, 0.76141919747853104, 0.23494826731985324, -0.021206340518520168,
        -0.40958081257691803},
       {{"w/Ftrl", 1.5768807157293738}, {"w/Ftrl_1", -10.228517842616352}}},
      {"FtrlOfAFixedRate",
       [] { return std::make_unique<FtrlOptimizer>(0.1, FtrlOptions{.learning_rate_power = 0}); },
       {0.022366997398481029, -0.0021051121418096358, -0.024641791287142563, -0.024522921164519488,
        -0.0018577904164824195, 0.02251538427282912},
       {{"w/Ftrl_1", -0.223669970651868}}},
  };
}

class GenuineTest : public OptimizerTest, public ::testing::WithParamInterface<std::tuple<Genuine, DType>> {};

TEST_P(GenuineTest, IsAsInTensorFlow) {
  const auto& [known, dtype] = GetParam();
  const Variable w = variable("w", kStart, dtype);
  const Output fed = ops::placeholder(root_, kDouble, {2, 3}, "gradient");
  const std::unique_ptr<Optimizer> optimizer = known.make();
  const Operation train = optimizer->apply_gradients(root_, {{ops::cast(root_, fed, dtype), w}});
  std::map<std::string, Output> values;
  for (const Variable& variable : optimizer->variables()) values[variable.name()] = ops::cast(root_, variable, kDouble);
  const Output value = ops::cast(root_, w, kDouble);
  auto session = initialized_session();
  for (int t = 1; t <= kSteps; ++t) session->run(train, {{fed, gradient_of_step(t)}});
  EXPECT_THAT(doubles(session->run(value)), Pointwise(DoubleNear(tolerance(dtype)), known.variable));
  for (const auto& [slot, first] : known.slots) {
    ASSERT_TRUE(values.contains(slot)) << slot;
    const double relative = doubles(session->run(values[slot]))[0] / first - 1;
    EXPECT_NEAR(relative, 0, 10 * tolerance(dtype)) << slot;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GenuineTest,
                         ::testing::Combine(::testing::ValuesIn(genuine()), ::testing::Values(kFloat, kDouble, kHalf)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + dtype_name(std::get<1>(info.param));
                         });

TEST_F(OptimizerTest, FtrlKeepsZerosWhereNothingWasSeen) {
  const Variable w = variable("w", Tensor::of<double>({0, 0}), kFloat);
  const Output gradient = ops::constant(root_, Tensor::of<float>({0, 1}));
  const Operation train = FtrlOptimizer(0.1, {.initial_accumulator_value = 0}).apply_gradients(root_, {{gradient, w}});
  auto session = initialized_session();
  session->run(train);
  const Tensor value = session->run(w);
  EXPECT_EQ(value.flat<float>()[0], 0);
  EXPECT_LT(value.flat<float>()[1], 0);
}

// With an epsilon of 0, which libtorch adds in another place.
TEST_F(OptimizerTest, AdamWTrainsAsLibtorchsDoes) {
  const Variable w = variable("w", kStart, kDouble), bias = variable("bias", Tensor::of<double>({1, -1}), kDouble);
  const Output rate = ops::placeholder(root_, kFloat, {}, "rate"), fed = ops::placeholder(root_, kDouble, {2, 3}, "g");
  const auto is_no_bias = [](const Variable& variable) { return variable.name() != "bias"; };
  AdamWOptimizer optimizer(rate, {.weight_decay = 0.125, .beta1 = 0.75, .epsilon = 0, .decays = is_no_bias});
  const Output of_bias = ops::slice(root_, ops::reshape(root_, fed, {6}), 0, 0, 2);
  const Operation train = optimizer.apply_gradients(root_, {{fed, w}, {of_bias, bias}});
  at::Tensor weight = at::tensor(doubles(kStart), at::kDouble).view({2, 3}).requires_grad_();
  at::Tensor own_bias = at::tensor({1.0, -1.0}, at::kDouble).requires_grad_();
  const auto options = torch::optim::AdamWOptions(1).betas({0.75, rounded(0.999)}).eps(0);
  torch::optim::AdamW decaying({weight}, torch::optim::AdamWOptions(options).weight_decay(0.125));
  torch::optim::AdamW plain({own_bias}, torch::optim::AdamWOptions(options).weight_decay(0));
  auto session = initialized_session();
  for (int t = 1; t <= 10; ++t) {
    const float now = 0.1f / static_cast<float>(t);
    session->run(train, {{fed, gradient_of_step(t)}, {rate, Tensor::scalar(now)}});
    weight.mutable_grad() = to_aten(gradient_of_step(t)).clone();
    own_bias.mutable_grad() = to_aten(gradient_of_step(t)).flatten().slice(0, 0, 2).clone();
    for (torch::optim::AdamW* own : {&decaying, &plain}) {
      own->param_groups()[0].options().set_lr(now);
      own->step();
    }
  }
  EXPECT_THAT(doubles(session->run(w)), Pointwise(DoubleNear(1e-5), doubles(to_tensor(weight.detach()))));
  EXPECT_THAT(doubles(session->run(bias)), Pointwise(DoubleNear(1e-5), doubles(to_tensor(own_bias.detach()))));
  EXPECT_THAT(variable_names(), ::testing::IsSupersetOf({"w/AdamW", "w/AdamW_1", "beta1_power", "beta2_power"}));
  EXPECT_EQ(optimizer.get_slot(w, "m")->name(), "w/AdamW");
}

TEST_F(OptimizerTest, AdamWWithoutADecayIsAdam) {
  const Variable w = variable("w", kStart), other = variable("other", kStart);
  const Output fed = ops::placeholder(root_, kFloat, {2, 3}, "g");
  const Operation adam = AdamOptimizer(0.1).apply_gradients(root_, {{fed, w}});
  const Operation adamw = AdamWOptimizer(0.1, {.weight_decay = 0}).apply_gradients(root_, {{fed, other}});
  auto session = initialized_session();
  const Tensor gradient = Tensor::of<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  for (int t = 0; t < 3; ++t) {
    session->run(adam, {{fed, gradient}});
    session->run(adamw, {{fed, gradient}});
  }
  EXPECT_TRUE(identical(session->run(w), session->run(other)));
  EXPECT_THAT(refusal_of([] { AdamWOptimizer(0.1, {.weight_decay = -1}); }),
              HasSubstr("weight_decay must be 0 or above"));
}

TEST_F(OptimizerTest, WhatAStepWaitsForIsNotWhatItsStateWaitsFor) {
  const Variable w = variable("w", kStart), count = variable("count", Tensor::scalar(0.0));
  const Output counted = ops::assign_add(root_, count, ops::constant(root_, 1.f));
  AdamOptimizer adam;
  const Operation train =
      adam.minimize(root_.with_control_dependencies({counted.op()}), ops::sum(root_, ops::square(root_, w)));
  auto session = initialized_session();
  EXPECT_EQ(session->run(count).item<float>(), 0) << "the state's initializers ran it";
  session->run(train);
  EXPECT_EQ(session->run(count).item<float>(), 1);
  for (const Variable& state : adam.variables()) EXPECT_NO_THROW(session->run(state, {}, {.snapshot = true}));
}

TEST_F(OptimizerTest, NumbersThatAFloatDoesNotHaveAreRefused) {
  const Variable w = variable("w", kStart, kDouble);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  for (const double bad : {1e-60, 1e60}) {
    EXPECT_THROW(GradientDescentOptimizer(bad).minimize(loss), InvalidArgumentError) << bad;
    EXPECT_THROW(AdamOptimizer(0.1, 0.9, 0.999, bad).minimize(loss), InvalidArgumentError) << bad;
  }
  EXPECT_NO_THROW(GradientDescentOptimizer(0.0).minimize(loss));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAlmostOne = 1 - 1e-8;  // a float takes it for 1

TEST_F(OptimizerTest, WhatIsNotFiniteIsRefusedByName) {
  const Output loss = ops::sum(root_, ops::square(root_, variable("w", kStart)));
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    const auto refused = [](const char* number) { return HasSubstr(std::string(number) + " must be "); };
    const auto rate = refused("learning_rate");
    EXPECT_THAT(refusal_of([&] { GradientDescentOptimizer(bad).minimize(loss); }), rate);
    EXPECT_THAT(refusal_of([&] { MomentumOptimizer(bad, 0.9).minimize(loss); }), rate);
    EXPECT_THAT(refusal_of([&] { AdamOptimizer{bad}.minimize(loss); }), rate);
    EXPECT_THAT(refusal_of([&] { AdagradOptimizer(bad).minimize(loss); }), rate);
    EXPECT_THAT(refusal_of([&] { RMSPropOptimizer(bad).minimize(loss); }), rate);
    EXPECT_THAT(refusal_of([&] { AdadeltaOptimizer{bad}.minimize(loss); }), refused("lr"));
    EXPECT_THAT(refusal_of([&] { FtrlOptimizer(bad).minimize(loss); }), rate);
    EXPECT_THAT(refusal_of([&] { MomentumOptimizer(0.1, bad).minimize(loss); }), refused("momentum"));
    EXPECT_THAT(refusal_of([&] { RMSPropOptimizer(0.1, 0.9, bad).minimize(loss); }), refused("momentum"));
    EXPECT_THAT(refusal_of([&] { AdagradOptimizer(0.1, bad).minimize(loss); }), refused("initial_accumulator_value"));
    EXPECT_THAT(refusal_of([&] { AdamOptimizer(0.1, 0.9, 0.999, bad).minimize(loss); }), refused("epsilon"));
    EXPECT_THAT(refusal_of([&] { RMSPropOptimizer(0.1, 0.9, 0, bad).minimize(loss); }), refused("epsilon"));
    EXPECT_THAT(refusal_of([&] { AdadeltaOptimizer(0.1, 0.9, bad).minimize(loss); }), refused("epsilon"));
  }
}

TEST_F(OptimizerTest, ADecayIsInItsRangeAsAFloatToo) {
  for (const double bad : {-0.1, 1.5, kNan, kAlmostOne, 1 - 1e-9}) {
    EXPECT_THAT(refusal_of([&] { AdamOptimizer(0.1, bad); }), HasSubstr("AdamOptimizer: beta1 must be "));
    EXPECT_THAT(refusal_of([&] { AdamOptimizer(0.1, 0.9, bad); }), HasSubstr("AdamOptimizer: beta2 must be "));
    EXPECT_THAT(refusal_of([&] { RMSPropOptimizer(0.1, bad); }), HasSubstr("RMSPropOptimizer: decay must be "));
    EXPECT_THAT(refusal_of([&] { AdadeltaOptimizer(0.1, bad); }), HasSubstr("AdadeltaOptimizer: rho must be "));
  }
  EXPECT_THAT(refusal_of([] { AdamOptimizer(0.1, 0.9, 1); }), HasSubstr("below 1, not 1"));
  EXPECT_THAT(refusal_of([] { AdamOptimizer(0.1, 0.9, kAlmostOne); }),
              HasSubstr("does not round to 1 as a float, not 0.99999999"));
}

TEST_F(OptimizerTest, AnEpsilonIsNotBelowZero) {
  EXPECT_EQ(refusal_of([] { AdamOptimizer(0.1, 0.9, 0.999, -1); }),
            "AdamOptimizer: epsilon must be 0 or above, not -1");
  EXPECT_THAT(refusal_of([] { RMSPropOptimizer(0.1, 0.9, 0, -1); }), HasSubstr("RMSPropOptimizer: epsilon"));
  EXPECT_THAT(refusal_of([] { AdadeltaOptimizer(0.1, 0.9, -1); }), HasSubstr("AdadeltaOptimizer: epsilon"));
}

// TensorFlow 1.15.5 takes all of these, and has finite weights after a step.
TEST_F(OptimizerTest, WhatTrainsInTensorFlowIsTaken) {
  const Output loss = ops::sum(root_, variable("w", kStart));
  const std::vector<Operation> steps = {MomentumOptimizer(0.1, 1).minimize(loss),
                                        MomentumOptimizer(0.1, -1).minimize(loss),
                                        GradientDescentOptimizer(-1).minimize(loss),
                                        RMSPropOptimizer(0.1, 1, 1.5, 0).minimize(loss),
                                        AdadeltaOptimizer(0.1, 1).minimize(loss),
                                        AdamOptimizer(0.1, 0, 0, 0).minimize(loss),
                                        GradientDescentOptimizer(ops::constant(root_, int64_t{1})).minimize(loss)};
  for (const Operation& step : steps) {
    auto session = initialized_session();
    session->run(step);
    EXPECT_TRUE(std::isfinite(session->run(loss).item<float>())) << step.name();
  }
}

class AccumulatorTest : public OptimizerTest {
 protected:
  std::string error_with(Optimizer& optimizer, const Variable& w) {
    return refusal_of([&] { optimizer.minimize(ops::sum(root_, ops::square(root_, w)), {}, {w}); });
  }
  // The same of both optimizers that have one.
  std::string error_of_start(double start, const Variable& w) {
    AdagradOptimizer adagrad(0.1, start);
    FtrlOptimizer ftrl(0.1, {.initial_accumulator_value = start});
    const std::string first = error_with(adagrad, w), second = error_with(ftrl, w);
    EXPECT_EQ(first == "", second == "") << second;
    return first;
  }
};

TEST_F(AccumulatorTest, StartsAboveZeroWithAdagrad) {
  EXPECT_EQ(refusal_of([] { AdagradOptimizer(0.1, 0); }),
            "AdagradOptimizer: initial_accumulator_value must be above 0, not 0");
  EXPECT_THAT(refusal_of([] { AdagradOptimizer(0.1, -1); }), HasSubstr("not -1"));
  EXPECT_THAT(refusal_of([] { AdagradOptimizer(0.1, kNan); }), HasSubstr("not nan"));
  FtrlOptimizer ftrl(0.1, {.initial_accumulator_value = 0});
  EXPECT_EQ(error_with(ftrl, variable("w", kStart)), "");
}

TEST_F(AccumulatorTest, StartsWithinTheRangeOfItsType) {
  const Variable single = variable("single", kStart), large = variable("large", kStart, kDouble),
                 half = variable("half", kStart, kHalf);
  for (const double bad : {1e-50, 1e50, kInfinity})
    EXPECT_THAT(error_of_start(bad, single), HasSubstr("initial_accumulator_value must be within the range of float"));
  EXPECT_THAT(error_of_start(1e-8, half), HasSubstr("within the range of half, not 1e-08"));
  EXPECT_EQ(error_of_start(1e-40, single), "");
  EXPECT_EQ(error_of_start(1e-50, large), "");
  EXPECT_EQ(error_of_start(1e-7, half), "");
}

TEST_F(OptimizerTest, ARateThatIsNoScalarOfNumbersIsRefusedWhereItIsGiven) {
  const Output loss = ops::sum(root_, ops::square(root_, variable("w", kStart)));
  const Output text = ops::placeholder(root_, kString, {}, "text"), two = ops::placeholder(root_, kFloat, {2}, "two");
  EXPECT_EQ(refusal_of([&] { GradientDescentOptimizer(text).minimize(loss); }),
            "GradientDescent: learning_rate must be a number, but text:0 is string of shape []");
  EXPECT_EQ(refusal_of([&] { MomentumOptimizer(0.1, two).minimize(loss); }),
            "Momentum: momentum must be a number, but two:0 is float of shape [2]");
}

TEST_F(OptimizerTest, HasAName) {
  EXPECT_EQ(refusal_of([] { GradientDescentOptimizer(0.1, ""); }), "Must specify the optimizer name");
  EXPECT_EQ(refusal_of([] { AdamOptimizer(0.1, 0.9, 0.999, 1e-8, ""); }), "Must specify the optimizer name");
}

TEST_F(OptimizerTest, FtrlRefusesARateThatIsNotAboveZero) {
  for (const double bad : {0.0, -1.0, kNan, 1e-50})
    EXPECT_THAT(refusal_of([&] { FtrlOptimizer{bad}; }),
                HasSubstr("FtrlOptimizer: learning_rate must be above 0, not "));
  const Variable w = variable("w", kStart), other = variable("other", kStart);
  const Output rate = ops::placeholder(root_, kDouble, {}, "rate");
  const Output gradient = ops::constant(root_, Tensor::of<float>({2, 3}, {1, 0, 1, 0, 1, 0}));
  FtrlOptimizer optimizer(rate);
  const Operation train = optimizer.apply_gradients(root_, {{gradient, other}, {gradient, w}});
  auto session = initialized_session();
  const Tensor start = session->run(w);
  for (const double bad : {0.0, -1.0, kNan, kInfinity, 1e-50}) {
    EXPECT_THAT(refusal_of([&] { session->run(train, {{rate, Tensor::scalar(bad)}}); }),
                HasSubstr("the learning rate must be above 0 and finite, not "));
    EXPECT_TRUE(identical(session->run(w), start));
    EXPECT_TRUE(identical(session->run(other), start));
  }
  session->run(train, {{rate, Tensor::scalar(0.1)}});
  EXPECT_TRUE(std::isfinite(session->run(*optimizer.get_slot(w, "linear")).flat<float>()[0]));
}

TEST_F(OptimizerTest, FtrlKeepsZerosWhereTheSquaresSeenAreTooSmallForTheirType) {
  const Variable w = variable("w", Tensor::of<double>({0, 0}), kFloat);
  const Output gradient = ops::placeholder(root_, kFloat, {2}, "gradient");
  const Operation train = FtrlOptimizer(0.1, {.initial_accumulator_value = 0}).apply_gradients(root_, {{gradient, w}});
  auto session = initialized_session();
  for (int i = 0; i < 2; ++i) session->run(train, {{gradient, Tensor::of<float>({1e-30f, 1})}});
  EXPECT_EQ(session->run(w).flat<float>()[0], 0);
  session->run(train, {{gradient, Tensor::of<float>({1, 1})}});
  EXPECT_NEAR(session->run(w).flat<float>()[0], -0.1, 1e-6);
}

TEST_F(OptimizerTest, FtrlWarmsUpFromAboveZero) {
  const Variable w = variable("w", kStart), step = ops::global_step(root_);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  const Operation bad = FtrlOptimizer(ops::linear_warmup(root_, 0.1, step, 10)).minimize(loss, step, {w});
  const Operation good = FtrlOptimizer(ops::linear_warmup(root_, 0.1, step, 10, 0.1)).minimize(loss, step, {w});
  auto session = initialized_session();
  EXPECT_THAT(refusal_of([&] { session->run(bad); }), HasSubstr("A warm-up needs a start_factor above 0"));
  EXPECT_EQ(session->run(step).item<int64_t>(), 0);
  session->run(good);
  EXPECT_EQ(session->run(step).item<int64_t>(), 1);
}

// In TensorFlow the weight is 0 for ever, and the loss is finite.
TEST_F(OptimizerTest, FtrlHasNanWhereAGradientWasNan) {
  const Variable w = variable("w", Tensor::of<double>({1, 1}), kFloat);
  const Output gradient = ops::constant(root_, Tensor::of<float>({std::numeric_limits<float>::quiet_NaN(), 1}));
  const Operation train = FtrlOptimizer(0.1).apply_gradients(root_, {{gradient, w}});
  auto session = initialized_session();
  session->run(train);
  const Tensor value = session->run(w);
  EXPECT_TRUE(std::isnan(value.flat<float>()[0]));
  EXPECT_TRUE(std::isfinite(value.flat<float>()[1]));
}

TEST_F(OptimizerTest, FtrlRefusesNumbersOutOfRange) {
  for (const FtrlOptions& bad :
       {FtrlOptions{.learning_rate_power = 0.5}, FtrlOptions{.initial_accumulator_value = -1},
        FtrlOptions{.l1_regularization_strength = -1}, FtrlOptions{.l2_regularization_strength = -1},
        FtrlOptions{.l2_shrinkage_regularization_strength = -1}}) {
    EXPECT_THROW(FtrlOptimizer(0.1, bad), InvalidArgumentError);
  }
}

TEST_F(OptimizerTest, ADenseNetLearns) {
  graph_.set_seed(7);
  const Output x = ops::placeholder(root_, kFloat, {-1, 4}, "x");
  const Output y = ops::placeholder(root_, kInt64, {-1}, "y");
  const Variable step = ops::global_step(root_);
  const Output hidden = ops::relu(root_, ops::dense(root_, x, 16, "hidden"));
  const Output loss = ops::cross_entropy_loss(root_, ops::dense(root_, hidden, 3, "logits"), y);
  const Operation train = GradientDescentOptimizer(0.5).minimize(loss, step);
  auto session = initialized_session();
  const Feeds feeds = {{x, Tensor::of<float>({3, 4}, {1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, -1})},
                       {y, Tensor::of<int64_t>({0, 1, 2})}};
  const float before = session->run(loss, feeds).item<float>();
  for (int i = 0; i < 50; ++i) session->run(train, feeds);
  EXPECT_LT(session->run(loss, feeds).item<float>(), before / 10);
  EXPECT_EQ(session->run(step).item<int64_t>(), 50);
}

TEST_F(OptimizerTest, AConvolutionalNetLearns) {
  graph_.set_seed(7);
  const Output x = ops::placeholder(root_, kFloat, {-1, 1, 6, 6}, "x");
  const Output y = ops::placeholder(root_, kInt64, {-1}, "y");
  const Output features = ops::max_pool2d(root_, ops::relu(root_, ops::conv2d_layer(root_, x, 8, 3)), 2);
  const Output loss = ops::cross_entropy_loss(root_, ops::dense(root_, ops::flatten(root_, features), 2), y);
  const Operation train = AdamOptimizer(0.02).minimize(loss);
  for (const Operation& op : graph_.operations()) {
    EXPECT_NE(op.type(), "TapeGradient");
    if (op.type() != "aten::convolution_backward") continue;
    EXPECT_THAT(op.attr<std::vector<int64_t>>("output_mask"), ::testing::ElementsAre(0, 1, 1));  // not of the images
  }
  auto session = initialized_session();
  std::vector<float> images(72);
  for (size_t i = 0; i < images.size(); ++i) images[i] = i < 36 ? static_cast<float>(i % 2) : static_cast<float>(i % 3);
  const Feeds feeds = {{x, Tensor::of(Shape{2, 1, 6, 6}, images)}, {y, Tensor::of<int64_t>({0, 1})}};
  const float before = session->run(loss, feeds).item<float>();
  for (int i = 0; i < 60; ++i) session->run(train, feeds);
  EXPECT_LT(session->run(loss, feeds).item<float>(), before / 10);
}

}  // namespace
}  // namespace longhaul
