#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"

namespace longhaul {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Values = std::vector<double>;

Values doubles(const Tensor& tensor) {
  const auto values = tensor.flat<double>();
  return {values.begin(), values.end()};
}

// An optimizer, and the same formula written out for one element: state is what it remembers, t counts from 1.
struct Rule {
  const char* name;
  std::function<std::unique_ptr<Optimizer>()> make;
  std::function<double(double gradient, Values& state, int t)> change;
  Values start = {0, 0};
};

double momentum_change(double gradient, Values& state, bool nesterov) {
  state[0] = 0.9 * state[0] + gradient;
  return 0.1 * (nesterov ? gradient + 0.9 * state[0] : state[0]);
}

// As a variable of floats that is multiplied in each step.
double power(float base, int t) {
  float power = base;
  for (int i = 1; i < t; ++i) power *= base;
  return power;
}

double adam_change(double gradient, Values& state, int t) {
  state[0] = 0.8 * state[0] + 0.2 * gradient;
  state[1] = 0.95 * state[1] + 0.05 * gradient * gradient;
  return 0.1 * std::sqrt(1 - power(0.95f, t)) / (1 - power(0.8f, t)) * state[0] / (std::sqrt(state[1]) + 1e-3);
}

double rmsprop_change(double gradient, Values& state) {
  state[0] = 0.8 * state[0] + 0.2 * gradient * gradient;
  state[1] = 0.5 * state[1] + 0.1 * gradient / std::sqrt(state[0] + 1e-3);
  return state[1];
}

std::vector<Rule> rules() {
  return {
      {"GradientDescent", [] { return std::make_unique<GradientDescentOptimizer>(0.1); },
       [](double gradient, Values&, int) { return 0.1 * gradient; }},
      {"Momentum", [] { return std::make_unique<MomentumOptimizer>(0.1, 0.9); },
       [](double gradient, Values& state, int) { return momentum_change(gradient, state, false); }},
      {"Nesterov", [] { return std::make_unique<MomentumOptimizer>(0.1, 0.9, true); },
       [](double gradient, Values& state, int) { return momentum_change(gradient, state, true); }},
      {"Adam", [] { return std::make_unique<AdamOptimizer>(0.1, 0.8, 0.95, 1e-3); }, adam_change},
      {"Adagrad",
       [] { return std::make_unique<AdagradOptimizer>(0.1, 0.2); },
       [](double gradient, Values& state, int) {
         state[0] += gradient * gradient;
         return 0.1 * gradient / std::sqrt(state[0]);
       },
       {0.2}},
      {"RMSProp",
       [] { return std::make_unique<RMSPropOptimizer>(0.1, 0.8, 0.5, 1e-3); },
       [](double gradient, Values& state, int) { return rmsprop_change(gradient, state); },
       {1, 0}},
  };
}

class OptimizerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> initialized_session() {
    auto session = new_session("", graph_);
    session->run(ops::global_variables_initializer(root_));
    return session;
  }
  Variable variable(std::string_view name, const Tensor& value, DType dtype = kFloat) {
    return ops::variable(root_, name, ops::cast(root_, ops::constant(root_, value), dtype));
  }
  std::vector<std::string> variable_names() const {
    std::vector<std::string> names;
    for (const VariableInfo& info : ops::global_variables(graph_)) names.push_back(info.name());
    return names;
  }

  Graph graph_;
  Scope root_{graph_};
};

class RuleTest : public OptimizerTest, public ::testing::WithParamInterface<std::tuple<Rule, DType, bool>> {};

const Tensor kStart = Tensor::of<double>({2, 3}, {1, -2, 3, 0.5, 0, -1});
constexpr int kSteps = 4;

Tensor gradient_of_step(int step) {
  Values values;
  for (int i = 0; i < 6; ++i) values.push_back(std::sin(1.0 + 3 * step + i));
  return Tensor::of(Shape{2, 3}, values);
}

Values expected_after(const Rule& rule) {
  Values values = doubles(kStart);
  std::vector<Values> states(values.size(), rule.start);
  for (int t = 1; t <= kSteps; ++t) {
    const Values gradient = doubles(gradient_of_step(t));
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

TEST_F(OptimizerTest, TheOperationsAreNamedAsInTensorFlow) {
  const Variable w = variable("w", kStart);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  EXPECT_EQ(AdamOptimizer().minimize(loss).name(), "Adam");
  EXPECT_EQ(MomentumOptimizer(0.1, 0.9).minimize(loss).name(), "Momentum");
  EXPECT_EQ(AdamOptimizer().minimize(loss).name(), "Adam_1");
  EXPECT_TRUE(graph_.find_operation("Adam/update_w/ApplyAdam").valid());
  EXPECT_TRUE(graph_.find_operation("Adam/learning_rate").valid());
  EXPECT_EQ(graph_.collection_of<Operation>(collections::kTrainOp).size(), 3u);
}

TEST_F(OptimizerTest, SlotsAreSavedButNotTrained) {
  const Variable w = variable("w", kStart);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  MomentumOptimizer momentum(0.1, 0.9);
  AdamOptimizer adam;
  momentum.minimize(loss);
  adam.minimize(loss);
  AdagradOptimizer(0.1).minimize(loss);
  RMSPropOptimizer(0.1).minimize(loss);
  AdamOptimizer().minimize(loss);
  EXPECT_THAT(variable_names(), ::testing::ElementsAre("w", "w/Momentum", "beta1_power", "beta2_power", "w/Adam",
                                                       "w/Adam_1", "w/Adagrad", "w/RMSProp", "w/RMSProp_1",
                                                       "beta1_power_1", "beta2_power_1", "w/Adam_2", "w/Adam_3"));
  EXPECT_EQ(ops::trainable_variables(graph_).size(), 1u);
  EXPECT_EQ(momentum.get_slot(w, "momentum")->name(), "w/Momentum");
  EXPECT_EQ(adam.get_slot(w, "v")->name(), "w/Adam_1");
  EXPECT_FALSE(momentum.get_slot(w, "v").has_value());
  EXPECT_EQ(adam.variables().size(), 4u);
}

TEST_F(OptimizerTest, AnOptimizersNameIsThatOfItsSlots) {
  const Variable w = variable("w", kStart);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  EXPECT_EQ(AdamOptimizer(0.001, 0.9, 0.999, 1e-8, "AdamG").minimize(root_.sub("train"), loss).name(), "train/AdamG");
  MomentumOptimizer(0.1, 0.9, false, "Heavy").minimize(loss);
  EXPECT_THAT(variable_names(),
              ::testing::ElementsAre("w", "train/beta1_power", "train/beta2_power", "w/AdamG", "w/AdamG_1", "w/Heavy"));
}

TEST_F(OptimizerTest, PowersAreFloatsAsInTensorFlow) {
  const Variable w = variable("w", kStart, kDouble);
  AdamOptimizer adam;
  adam.minimize(ops::sum(root_, ops::square(root_, w)));
  EXPECT_EQ(adam.get_slot(w, "m")->dtype(), kDouble);
  for (const char* name : {"beta1_power", "beta2_power"})
    EXPECT_EQ(graph_.output(std::string(name) + ":0").dtype(), kFloat) << name;
}

TEST_F(OptimizerTest, TheStepIsCountedAfterAllUpdates) {
  const Variable w = variable("w", kStart), step = ops::global_step(root_);
  const Output loss = ops::sum(root_, ops::square(root_, w));
  MomentumOptimizer(0.1, 0.9).minimize(loss, step);
  const Operation count = graph_.operation("Momentum/global_step");
  EXPECT_EQ(count.type(), "AssignAdd");
  EXPECT_THAT(count.control_inputs(), ::testing::ElementsAre(graph_.operation("Momentum/update_w/ApplyMomentum")));
}

TEST_F(OptimizerTest, ALossWithoutAPathToVariablesIsRefused) {
  variable("w", kStart);
  variable("v", kStart);
  const Output loss = ops::constant(root_, 1.f);
  try {
    GradientDescentOptimizer(0.1).minimize(loss);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("[w, v]"));
  }
}

TEST_F(OptimizerTest, OnlyTheVariablesNamedAreChanged) {
  const Variable w = variable("w", kStart), v = variable("v", kStart);
  const Output loss = ops::sum(root_, ops::mul(root_, w, v));
  const Operation train = GradientDescentOptimizer(0.1).minimize(loss, {}, {v});
  auto session = initialized_session();
  const Tensor before = session->run(w);
  session->run(train);
  EXPECT_TRUE(identical(session->run(w), before));
  EXPECT_FALSE(identical(session->run(v), before));
}

TEST_F(OptimizerTest, TheLearningRateMayBeATensor) {
  const Variable w = variable("w", Tensor::scalar(10.0));
  const Output rate = ops::placeholder(root_, kFloat, {}, "rate");
  const Operation train = GradientDescentOptimizer(rate).minimize(w * 2.0);
  auto session = initialized_session();
  session->run(train, {{rate, Tensor::scalar(1.f)}});
  session->run(train, {{rate, Tensor::scalar(0.5f)}});
  EXPECT_EQ(session->run(w).item<float>(), 7);
}

}  // namespace
}  // namespace longhaul
