// Tables of which a step trains some rows: ops::embedding() with a sparse gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/ops/doubles_fixture.h"
#include "longhaul/session/session.h"

namespace longhaul {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Doubles = std::vector<double>;
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>()>;

const Tensor kTable = Tensor::of<double>({4, 2}, {1, -2, 3, 0.5, 0, -1, 2, -0.5});
constexpr int kNumSteps = 4;

// Row 2 never comes, row 0 in the second step alone, and in each step one row comes several times.
Tensor rows_of_step(int step) {
  static const std::vector<std::vector<int64_t>> rows = {{1, 3, 1}, {0, 0, 3}, {3, 1, 3}, {1, 1, 1}};
  return Tensor::of(rows[static_cast<size_t>(step - 1)]);
}
Tensor factors_of_step(int step) {
  Doubles values;
  for (int i = 0; i < 6; ++i) values.push_back(std::sin(1.0 + 3 * step + i));
  return Tensor::of(Shape{3, 2}, values);
}

class SparseGradientTest : public ::testing::Test {
 protected:
  // A table "w", and what each step feeds: three rows of it, and a factor for each of their elements.
  void make_table(DType dtype = kDouble) {
    table_ = ops::variable(root_, "w", ops::cast(root_, ops::constant(root_, kTable), dtype));
    rows_ = ops::placeholder(root_, kInt64, {3}, "rows");
    fed_factors_ = ops::placeholder(root_, kDouble, {3, 2}, "factors");
    factors_ = ops::cast(root_, fed_factors_, dtype);
  }
  Output loss_of(const Output& rows, const Output& factors, bool sparse = true) {
    return ops::sum(root_, ops::mul(root_, ops::embedding(root_, table_, rows, {.sparse_gradient = sparse}), factors));
  }
  Output loss(bool sparse = true) { return loss_of(rows_, factors_, sparse); }

  std::unique_ptr<Session> initialized_session() {
    auto session = new_session("", graph_);
    session->run(ops::global_variables_initializer(root_));
    return session;
  }
  Feeds feeds_of_step(int step) const { return {{rows_, rows_of_step(step)}, {fed_factors_, factors_of_step(step)}}; }
  void train(Session& session, const Operation& train_op) {
    for (int step = 1; step <= kNumSteps; ++step) session.run(train_op, feeds_of_step(step));
  }
  Doubles table_after(const Operation& train_op) {
    auto session = initialized_session();
    train(*session, train_op);
    return doubles(session->run(table_));
  }
  bool has(const std::string& operation) const { return graph_.find_operation(operation).valid(); }

  template <typename E, typename F>
  static std::string message_of(F&& body) {
    try {
      body();
    } catch (const E& error) {
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  Graph graph_;
  Scope root_{graph_};
  Variable table_;
  Output rows_, fed_factors_, factors_;
};

// What TensorFlow 1.15.5 has after four steps with tf.nn.embedding_lookup(): the table of doubles, and of each slot the
// first element of row 1.
struct GenuineRows {
  const char* name;
  MakeOptimizer make;
  std::string update;  // the operation
  Doubles table;
  std::map<std::string, double> slots = {};  // by the variable's name
};

const Doubles kMomentum = {0.8930894900108547, -2.044533714237005, 3.0280205079939004, 0.5731809511522348, 0.0, -1.0,
                           2.2210611138205976, -0.5411242746995808};
const Doubles kRmsProp = {0.8946373370155518, -2.048571042363747,  3.036071458489595, 0.5354156070513671, 0.0, -1.0,
                          2.1639479697330066, -0.48643654419822646};

std::vector<GenuineRows> genuine_gradient_descent() {
  return {
      {"GradientDescent",
       [] { return std::make_unique<GradientDescentOptimizer>(0.1); },
       "GradientDescent/update_w/ScatterSub",
       {0.8930894900108548, -2.0445337142370055, 3.0194959784485906, 0.5174921962943152, 0.0, -1.0, 2.0832819472354105,
        -0.4770711310908099}},
      {"Momentum",
       [] { return std::make_unique<MomentumOptimizer>(0.1, 0.9); },
       "Momentum/update_w/SparseApplyMomentum",
       kMomentum,
       {{"w/Momentum", -0.18548807971798775}}},
      {"Nesterov",
       [] { return std::make_unique<MomentumOptimizer>(0.1, 0.9, true); },
       "Momentum/update_w/SparseApplyMomentum",
       {0.7968700335695691, -2.0846140559885433, 3.04471443497504, 0.5833550505865568, 0.0, -1.0, 2.282236944403441,
        -0.5140829773399537},
       {{"w/Momentum", -0.18548807971798775}}},
      {"Adam",
       [] { return std::make_unique<AdamOptimizer>(0.1); },
       "Adam/update_w/ApplyAdam",
       {0.8209466568877684, -2.1790532688987443, 2.8910093316587373, 0.674900229826531, 0.0, -1.0, 2.2596128176612993,
        -0.5667204181274078},
       {{"w/Adam", -0.020432514778251264}, {"w/Adam_1", 0.00035343164765145815}}},
  };
}

std::vector<GenuineRows> genuine_adaptive() {
  const FtrlOptions regularized{.learning_rate_power = -0.7,
                                .l1_regularization_strength = 0.2,
                                .l2_regularization_strength = 0.3,
                                .l2_shrinkage_regularization_strength = 0.01};
  return {
      {"Adagrad",
       [] { return std::make_unique<AdagradOptimizer>(0.1, 0.2); },
       "Adagrad/update_w/SparseApplyAdagrad",
       {0.907746105237157, -2.070561864183424, 3.012094352625887, 0.5321513518550752, 0.0, -1.0, 2.1047016820009494,
        -0.492449092921427},
       {{"w/Adagrad", 0.5538861870471625}}},
      {"RMSProp",
       [] { return std::make_unique<RMSPropOptimizer>(0.1, 0.8, 0.5, 1e-3); },
       "RMSProp/update_w/SparseApplyRMSProp",
       kRmsProp,
       {{"w/RMSProp", 0.5673669212591387}, {"w/RMSProp_1", -0.010983526737750639}}},
      {"CenteredRMSProp",
       [] { return std::make_unique<RMSPropOptimizer>(0.1, 0.8, 0.5, 1e-3, true); },
       "RMSProp/update_w/SparseApplyCenteredRMSProp",
       {0.8922171061256656, -2.0488018495192657, 3.0363304733885905, 0.536139890663609, 0.0, -1.0, 2.1696492157060128,
        -0.48746418218238874},
       {{"w/RMSProp", 0.5673669212591387},
        {"w/RMSProp_1", -0.034273052040177845},
        {"w/RMSProp_2", -0.011071370220266401}}},
      {"Adadelta",
       [] { return std::make_unique<AdadeltaOptimizer>(0.1, 0.9, 1e-3); },
       "Adadelta/update_w/SparseApplyAdadelta",
       {0.9900434609059194, -2.009757038347565, 2.999718324999829, 0.5023240160392748, 0.0, -1.0, 2.0148661466550246,
        -0.4940925035372144},
       {{"w/Adadelta", 0.031481958956827726}, {"w/Adadelta_1", 0.002182720759608311}}},
      {"Ftrl",
       [] { return std::make_unique<FtrlOptimizer>(0.1); },
       "Ftrl/update_w/SparseApplyFtrl",
       {0.6204672567587634, -0.923597660988154, 0.5884522594844112, 0.2872195145068297, 0.0, -1.0, 0.621540308858589,
        -0.27794780620858905},
       {{"w/Ftrl", 0.45388618704716255}, {"w/Ftrl_1", -3.9644661257627303}}},
      {"RegularizedFtrl",
       [=] { return std::make_unique<FtrlOptimizer>(0.1, regularized); },
       "Ftrl/update_w/SparseApplyFtrlV2",
       {0.6827701242506831, -0.9801750899992311, 0.5570511512195022, 0.28395278038424343, 0.0, -1.0, 0.6130893889225303,
        -0.28546244588344405},
       {{"w/Ftrl", 0.45388618704716255}, {"w/Ftrl_1", -3.738713545402289}}},
  };
}

class GenuineRowsTest : public SparseGradientTest,
                        public ::testing::WithParamInterface<std::tuple<GenuineRows, DType>> {};

TEST_P(GenuineRowsTest, AreAsInTensorFlow) {
  const auto& [known, dtype] = GetParam();
  const double tolerance = dtype == kDouble ? 1e-12 : 2e-6;
  make_table(dtype);
  const std::unique_ptr<Optimizer> optimizer = known.make();
  const Operation train_op = optimizer->minimize(loss());
  EXPECT_TRUE(has(known.update));
  std::map<std::string, Output> slots;
  for (const Variable& slot : optimizer->variables()) slots[slot.name()] = ops::cast(root_, slot, kDouble);
  const Output value = ops::cast(root_, table_, kDouble);
  auto session = initialized_session();
  const Tensor held = session->run(table_);  // so the first update goes to another buffer
  const std::string before = held.to_string();
  train(*session, train_op);
  const Doubles table = doubles(session->run(value));
  EXPECT_THAT(table, Pointwise(DoubleNear(tolerance), known.table));
  EXPECT_EQ(table[4], 0);
  EXPECT_EQ(table[5], -1);
  EXPECT_EQ(held.to_string(), before);
  for (const auto& [name, first] : known.slots) {
    ASSERT_TRUE(slots.contains(name)) << name;
    EXPECT_NEAR(doubles(session->run(slots[name]))[2] / first - 1, 0, 10 * tolerance) << name;
  }
}

std::string rows_name(const ::testing::TestParamInfo<GenuineRowsTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + dtype_name(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Descent, GenuineRowsTest,
                         ::testing::Combine(::testing::ValuesIn(genuine_gradient_descent()),
                                            ::testing::Values(kFloat, kDouble)),
                         rows_name);
INSTANTIATE_TEST_SUITE_P(Adaptive, GenuineRowsTest,
                         ::testing::Combine(::testing::ValuesIn(genuine_adaptive()),
                                            ::testing::Values(kFloat, kDouble)),
                         rows_name);

TEST_F(SparseGradientTest, MayBeOfHalves) {
  make_table(kHalf);
  const Operation train_op = MomentumOptimizer(0.1, 0.9).minimize(loss());
  const Output value = ops::cast(root_, table_, kDouble);
  auto session = initialized_session();
  train(*session, train_op);
  EXPECT_THAT(doubles(session->run(value)), Pointwise(DoubleNear(8e-3), kMomentum));
}

TEST_F(SparseGradientTest, IsAskedForElseAMomentumMovesAllRows) {
  make_table();
  const Doubles dense = table_after(MomentumOptimizer(0.1, 0.9).minimize(loss(/*sparse=*/false)));
  EXPECT_FALSE(has("Momentum/update_w/SparseApplyMomentum"));
  EXPECT_GT(std::abs(dense[0] - kMomentum[0]), 0.1) << "row 0, which came in one step";
}

TEST_F(SparseGradientTest, OfTwoLookupsIsThatOfAllTheirRows) {
  make_table();
  const Output first = loss_of(ops::slice(root_, rows_, 0, 0, 1), ops::slice(root_, factors_, 0, 0, 1));
  const Output others = loss_of(ops::slice(root_, rows_, 0, 1), ops::slice(root_, factors_, 0, 1));
  const Operation train_op = RMSPropOptimizer(0.1, 0.8, 0.5, 1e-3).minimize(first + others);
  EXPECT_TRUE(has("RMSProp/update_w/SparseApplyRMSProp"));
  EXPECT_THAT(table_after(train_op), Pointwise(DoubleNear(1e-12), kRmsProp));
}

// As TensorFlow has them.
TEST_F(SparseGradientTest, BesideAnotherUseOfTheTableIsATensor) {
  make_table();
  const Output all = ops::mul(root_, ops::sum(root_, ops::square(root_, table_)), 0.01);
  const Operation train_op = MomentumOptimizer(0.1, 0.9).minimize(loss() + all);
  EXPECT_TRUE(has("Momentum/update_w/ApplyMomentum"));
  EXPECT_THAT(
      table_after(train_op),
      Pointwise(DoubleNear(1e-12), {0.6930418838797018, -2.0842626176701278, 2.95725114561118, 0.603119472344867, 0.0,
                                    -0.9819572665774624, 2.2449772146875597, -0.5043541115002923}));
}

TEST_F(SparseGradientTest, StaysOneWhenItIsClippedByTheGlobalNorm) {
  make_table();
  MomentumOptimizer optimizer(0.1, 0.9);
  const auto [clipped, norm] = ops::clip_by_global_norm(root_, optimizer.compute_gradients(root_, loss()), 0.5);
  const Operation train_op = optimizer.apply_gradients(root_, clipped);
  EXPECT_TRUE(has("Momentum/update_w/SparseApplyMomentum"));
  EXPECT_NEAR(initialized_session()->run(norm, feeds_of_step(1)).item<double>(), 1.7750103039171412, 1e-12);
  EXPECT_THAT(table_after(train_op),
              Pointwise(DoubleNear(1e-12), {0.9699488088080866, -2.0125178634089216, 3.007830479506843,
                                            0.5206634338612371, 0.0, -1.0, 2.062183824787924, -0.5116671903221695}));
}

TEST_F(SparseGradientTest, IsClippedByItsValuesBeforeTheyAreAdded) {
  const Output values = ops::constant(root_, Tensor::of<double>({2, 2}, {3, 4, 0.3, -4}));
  const Output rows = ops::constant(root_, Tensor::of<int64_t>({1, 1}));
  const Output gradient = ops::indexed_slices(root_, values, rows, 2);
  const auto run = [&](const Output& clipped) { return doubles(new_session("", graph_)->run(clipped)); };
  const Output by_value = ops::clip_by_value(root_, gradient, -1, 1);
  EXPECT_TRUE(ops::indexed_slices_of(by_value).has_value());
  EXPECT_THAT(run(by_value), Pointwise(DoubleNear(1e-12), {0.0, 0.0, 1.3, 0.0}));
  const Output by_norm = ops::clip_by_norm(root_, gradient, 1, {1});
  EXPECT_TRUE(ops::indexed_slices_of(by_norm).has_value());
  const double length = std::hypot(0.3, 4);
  EXPECT_THAT(run(by_norm), Pointwise(DoubleNear(1e-12), {0.0, 0.0, 0.6 + 0.3 / length, 0.8 - 4 / length}));
  const Output limits = ops::constant(root_, Tensor::of<double>({2, 2}, {9, 9, 2, 9}));
  const Output by_tensor = ops::clip_by_value(root_, gradient, -9, limits);
  EXPECT_FALSE(ops::indexed_slices_of(by_tensor).has_value()) << "a limit for each element of the table";
  EXPECT_THAT(run(by_tensor), ElementsAre(0, 0, 2, 0));
}

TEST_F(SparseGradientTest, IsATensorForAllOtherOperations) {
  make_table();
  const Output gradient = ops::gradients(root_, {loss()}, {table_})[0];
  EXPECT_EQ(gradient.shape(), (Shape{4, 2}));
  const Tensor tensor = initialized_session()->run(ops::mul(root_, gradient, 2.0), feeds_of_step(1));
  const Doubles f = doubles(factors_of_step(1));
  EXPECT_THAT(doubles(tensor), Pointwise(DoubleNear(1e-12), {0.0, 0.0, 2 * (f[0] + f[4]), 2 * (f[1] + f[5]), 0.0, 0.0,
                                                             2 * f[2], 2 * f[3]}));
}

TEST_F(SparseGradientTest, CanBeDifferentiatedAgain) {
  make_table();
  const Output gradient = ops::gradients(root_, {loss()}, {table_})[0];
  const Output of_factors = ops::gradients(root_, {ops::sum(root_, gradient * gradient)}, {fed_factors_})[0];
  ASSERT_TRUE(of_factors.valid());
  const Doubles found = doubles(initialized_session()->run(of_factors, feeds_of_step(1)));
  const Doubles f = doubles(factors_of_step(1));
  const double first = 2 * (f[0] + f[4]), second = 2 * (f[1] + f[5]);
  EXPECT_THAT(found, Pointwise(DoubleNear(1e-12), {first, second, 2 * f[2], 2 * f[3], first, second}));
}

TEST_F(SparseGradientTest, LeavesOutNegativeRowsAsATensorAndRefusesThoseBeyondTheLast) {
  const Output values = ops::constant(root_, Tensor::of<double>({2, 1}, {3, 4}));
  const Output rows = ops::placeholder(root_, kInt64, {2}, "rows");
  const Output sum = ops::indexed_slices(root_, values, rows, 2);
  auto session = new_session("", graph_);
  EXPECT_THAT(doubles(session->run(sum, {{rows, Tensor::of<int64_t>({-1, 1})}})), ElementsAre(0, 4));
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { session->run(sum, {{rows, Tensor::of<int64_t>({0, 2})}}); }),
              HasSubstr("segment 2 is out of range: num_segments is 2"));
}

TEST_F(SparseGradientTest, OfARowThatIsNotThereChangesNothing) {
  make_table();
  const Variable other = ops::variable(root_, "other", Tensor::scalar(1.0));
  const Output rows = ops::placeholder(root_, kInt32, {2}, "numbers");
  const Output values = ops::constant(root_, Tensor::of<double>({2, 2}, {1, 1, 1, 1}));
  const Output gradient = ops::indexed_slices(root_, values, rows, 4);
  MomentumOptimizer optimizer(0.1, 0.9);
  const Operation train_op = optimizer.apply_gradients(root_, {{ops::constant(root_, 1.0), other}, {gradient, table_}});
  auto session = initialized_session();
  for (const int32_t bad : {4, -1}) {
    const Feeds feeds = {{rows, Tensor::of<int32_t>({1, bad})}};
    EXPECT_THAT(message_of<InvalidArgumentError>([&] { session->run(train_op, feeds); }),
                HasSubstr("w has 4 rows, but its gradient is for row " + std::to_string(bad)));
  }
  EXPECT_TRUE(identical(session->run(table_), kTable));
  EXPECT_EQ(session->run(other).item<double>(), 1);
  EXPECT_THAT(doubles(session->run(*optimizer.get_slot(table_, "momentum"))), ::testing::Each(0));
  session->run(train_op, {{rows, Tensor::of<int32_t>({1, 0})}});
  EXPECT_DOUBLE_EQ(doubles(session->run(table_))[0], 1 - static_cast<double>(0.1f));
}

// Adam has no rule for rows: it takes their sum, which as a tensor leaves negative indices out.
TEST_F(SparseGradientTest, OfARowThatIsNotThereChangesNothingWithAdamEither) {
  make_table();
  const Variable other = ops::variable(root_, "other", Tensor::scalar(1.0)), step = ops::global_step(root_);
  const Output rows = ops::placeholder(root_, kInt64, {2}, "numbers");
  const Output values = ops::constant(root_, Tensor::of<double>({2, 2}, {1, 1, 1, 1}));
  const Output gradient = ops::indexed_slices(root_, values, rows, 4);
  AdamOptimizer optimizer(0.1);
  const Operation train_op =
      optimizer.apply_gradients(root_, {{ops::constant(root_, 1.0), other}, {gradient, table_}}, step);
  auto session = initialized_session();
  for (const int64_t bad : {4, -1}) {
    const Feeds feeds = {{rows, Tensor::of<int64_t>({1, bad})}};
    EXPECT_THAT(message_of<InvalidArgumentError>([&] { session->run(train_op, feeds); }),
                HasSubstr("segment " + std::to_string(bad) + " is out of range: num_segments is 4"));
  }
  EXPECT_TRUE(identical(session->run(table_), kTable));
  EXPECT_EQ(session->run(other).item<double>(), 1);
  EXPECT_EQ(session->run(step).item<int64_t>(), 0);
  EXPECT_FLOAT_EQ(session->run("beta1_power:0").item<float>(), 0.9f);
  session->run(train_op, {{rows, Tensor::of<int64_t>({1, 0})}});
  EXPECT_NEAR(doubles(session->run(table_))[0], 0.9, 1e-6);
}

TEST_F(SparseGradientTest, OfARateThatFtrlCannotDivideByChangesNothing) {
  make_table();
  const Output rate = ops::placeholder(root_, kFloat, {}, "rate");
  const Operation train_op = FtrlOptimizer(rate).minimize(loss());
  auto session = initialized_session();
  for (const float bad : {0.f, -1.f}) {
    Feeds feeds = feeds_of_step(1);
    feeds.emplace_back(rate, Tensor::scalar(bad));
    EXPECT_THAT(message_of<InvalidArgumentError>([&] { session->run(train_op, feeds); }),
                HasSubstr("the learning rate must be above 0 and finite, not "));
  }
  EXPECT_TRUE(identical(session->run(table_), kTable));
}

TEST_F(SparseGradientTest, OfNoRowsChangesNothing) {
  make_table();
  const Output none = ops::indexed_slices(root_, ops::constant(root_, Tensor(kDouble, {0, 2})),
                                          ops::constant(root_, Tensor(kInt64, {0})), 4);
  const Operation train_op = MomentumOptimizer(0.1, 0.9).apply_gradients(root_, {{none, table_}});
  auto session = initialized_session();
  const Tensor held = session->run(table_);
  session->run(train_op);
  EXPECT_TRUE(identical(session->run(table_), kTable));
}

TEST_F(SparseGradientTest, OfZerosLeavesZerosWithFtrl) {
  const Variable w = ops::variable(root_, "w", Tensor::of<double>({2, 2}, {0, 0, 0, 0}));
  const Output zeros = ops::indexed_slices(root_, ops::constant(root_, Tensor::of<double>({1, 2}, {0, 0})),
                                           ops::constant(root_, Tensor::of<int64_t>({1})), 2);
  const Operation train_op = FtrlOptimizer(0.1, {.initial_accumulator_value = 0}).apply_gradients(root_, {{zeros, w}});
  auto session = initialized_session();
  session->run(train_op);
  EXPECT_THAT(doubles(session->run(w)), ::testing::Each(0));
}

TEST_F(SparseGradientTest, OfAnotherTableIsRefused) {
  make_table();
  const Output values = ops::constant(root_, Tensor::of<double>({2, 2}, {1, 1, 1, 1}));
  const Output rows = ops::constant(root_, Tensor::of<int64_t>({0, 1}));
  const Output gradient = ops::indexed_slices(root_, values, rows, 5);
  MomentumOptimizer optimizer(0.1, 0.9);
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { optimizer.apply_gradients(root_, {{gradient, table_}}); }),
              HasSubstr("w is [4,2]"));
}

TEST_F(SparseGradientTest, HasTheSameBytesEachTime) {
  make_table();
  const Operation train_op = AdagradOptimizer(0.1).minimize(loss());
  EXPECT_EQ(table_after(train_op), table_after(train_op));
}

TEST_F(SparseGradientTest, IsRefusedOfWhatIsNoVariable) {
  make_table();
  const Output twice = ops::concat(root_, {table_, table_}, 0);
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { ops::embedding(root_, twice, rows_, {.sparse_gradient = true}); }),
              HasSubstr("is computed (aten::cat)"));
  ops::embedding(root_, ops::identity(root_, table_), rows_, {.sparse_gradient = true});
}

TEST_F(SparseGradientTest, IsRefusedWithAPaddingIndex) {
  make_table();
  const ops::NamedArgs arguments = {
      {"weight", Output(table_)}, {"indices", rows_}, {"padding_idx", int64_t{0}}, {"sparse", true}};
  const Output rows = ops::aten(root_, "aten::embedding", "padded", arguments).output();
  EXPECT_THAT(message_of<UnimplementedError>([&] { ops::gradients(root_, {ops::sum(root_, rows)}, {table_}); }),
              HasSubstr("padded: a sparse gradient"));
}

}  // namespace
}  // namespace longhaul
