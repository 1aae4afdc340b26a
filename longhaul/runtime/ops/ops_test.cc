#include "longhaul/ops/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

class OpsTest : public ::testing::Test {
 protected:
  template <typename T = float>
  std::vector<T> run(const Output& output, const Feeds& feeds = {}) {
    const Tensor value = new_session("", graph_)->run(output, feeds);
    const auto values = value.flat<T>();
    return {values.begin(), values.end()};
  }
  Output floats(std::initializer_list<float> values) { return ops::constant(root_, Tensor::of<float>(values)); }
  Output matrix(int64_t rows, int64_t columns, std::vector<float> values) {
    return ops::constant(root_, Tensor::of<float>(Shape{rows, columns}, values));
  }
  static auto near(std::vector<float> values) { return Pointwise(FloatNear(1e-5f), std::move(values)); }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(OpsTest, ArithmeticIsWrittenAsSuch) {
  const Output a = floats({1, 2}), b = floats({4, 8});
  EXPECT_THAT(run(a + b), ElementsAre(5, 10));
  EXPECT_THAT(run(b - a), ElementsAre(3, 6));
  EXPECT_THAT(run(a * b), ElementsAre(4, 16));
  EXPECT_THAT(run(b / a), ElementsAre(4, 4));
  EXPECT_THAT(run(-a), ElementsAre(-1, -2));
  EXPECT_THAT(run(2 * a + 1), ElementsAre(3, 5));
  EXPECT_THAT(run(1 - a * 0.5), ElementsAre(0.5, 0));
  EXPECT_THAT(run(8 / a - 1), ElementsAre(7, 3));
  EXPECT_THAT(run(a / 2), ElementsAre(0.5, 1));
  const Variable v = ops::variable(root_, "v", Tensor::scalar(3.f));
  auto session = new_session("", graph_);
  EXPECT_THROW(graph_.operation("nothing"), NotFoundError);
  const Output product = v * 2.0;
  session->run(v.initializer());
  EXPECT_EQ(session->run(product).item<float>(), 6);
}

TEST_F(OpsTest, AttrsThatBeginWithAnUnderscoreAreNotForTheOperator) {
  const Output a = floats({1, 2});
  const Attrs attrs = {{"edges", std::vector<std::string>{"self"}}, {"_class", std::vector<std::string>{"loc:@x"}}};
  EXPECT_THAT(run(root_.add("aten::neg", "n", {a}, attrs).output()), ElementsAre(-1, -2));
  EXPECT_THROW(root_.add("aten::neg", "n", {a}, {{"class", std::string("x")}}), InvalidArgumentError);
}

TEST_F(OpsTest, WholeNumbersKeepIntegersWhole) {
  const Output n = ops::constant(root_, Tensor::of<int64_t>({1, 2}));
  EXPECT_EQ((n + 1).dtype(), kInt64);
  EXPECT_EQ((n * 2).dtype(), kInt64);
  EXPECT_EQ((n * 0.5).dtype(), kFloat);
  EXPECT_THAT(run<int64_t>(n * 3 + 1), ElementsAre(4, 7));
}

TEST_F(OpsTest, MatricesBatchesAndMoreAreMultiplied) {
  const Output a = matrix(2, 2, {1, 2, 3, 4});
  EXPECT_THAT(run(ops::matmul(root_, a, a)), ElementsAre(7, 10, 15, 22));
  const Output batch = ops::unsqueeze(root_, a, 0);
  EXPECT_EQ(ops::matmul(root_, batch, batch).op().type(), "aten::bmm");
  EXPECT_THAT(run(ops::matmul(root_, batch, batch)), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(run(ops::matmul(root_, batch, a)), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(run(ops::addmm(root_, floats({1, 0}), a, a)), ElementsAre(8, 10, 16, 22));
  EXPECT_THAT(run(ops::linear(root_, a, a, floats({1, 0}))), ElementsAre(6, 11, 12, 25));
}

TEST_F(OpsTest, ManyMatricesAreMultipliedWithoutTheTape) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const Output x = ops::placeholder(root_, kFloat, {-1, 2, 2, 2}, "x");
  const Output y = ops::placeholder(root_, kFloat, {-1, 2, 2, 2}, "y");
  const Output w = matrix(2, 1, {1, 10});
  const Output by_matrix = ops::matmul(root_, x, w), by_batch = ops::matmul(root_, x, y);
  EXPECT_EQ(by_matrix.shape(), Shape({-1, 2, 2, 1}));
  EXPECT_EQ(by_batch.shape(), Shape({-1, 2, 2, 2}));
  const Feeds feeds = {{x, Tensor::of(Shape{2, 2, 2, 2}, numbers)}, {y, Tensor::of(Shape{2, 2, 2, 2}, numbers)}};
  EXPECT_THAT(run(by_matrix, feeds), ElementsAre(21, 43, 65, 87, 109, 131, 153, 175));
  const Output plain = ops::aten(root_, "aten::matmul", "plain", {{"self", x}, {"other", y}}).output();
  EXPECT_EQ(run(by_batch, feeds), run(plain, feeds));
  const Output gradient = ops::gradients(root_, {by_batch}, {x})[0];
  const int before = graph_.num_operations();
  for (const Operation& op : graph_.operations()) EXPECT_NE(op.type(), "TapeGradient");
  const Output reference = ops::gradients(root_, {plain}, {x})[0];
  EXPECT_EQ(run(gradient, feeds), run(reference, feeds));
  EXPECT_GT(graph_.num_operations(), before);
}

TEST_F(OpsTest, AReshapeThatCannotBeIsAnErrorOfTheOperation) {
  const Output x = ops::placeholder(root_, kFloat, {-1}, "x");
  const Output y = ops::reshape(root_, x, {-1, 4}, "rows");
  try {
    run(y, {{x, Tensor::of<float>({1, 2, 3})}});
    FAIL() << "no error";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("rows (aten::reshape)"));
  }
}

TEST_F(OpsTest, DimensionsAreReduced) {
  const Output a = matrix(2, 3, {1, 2, 3, 4, 5, 9});
  EXPECT_THAT(run(ops::sum(root_, a)), ElementsAre(24));
  EXPECT_THAT(run(ops::sum(root_, a, {0})), ElementsAre(5, 7, 12));
  EXPECT_THAT(run(ops::mean(root_, a, {-1})), ElementsAre(2, 6));
  EXPECT_THAT(run(ops::mean(root_, a)), ElementsAre(4));
  EXPECT_THAT(run(ops::max(root_, a, {1})), ElementsAre(3, 9));
  EXPECT_THAT(run(ops::min(root_, a)), ElementsAre(1));
  EXPECT_EQ(ops::max(root_, a, {1}, true).shape(), Shape({2, 1}));
  EXPECT_THAT(run<int64_t>(ops::argmax(root_, a)), ElementsAre(2, 2));
  EXPECT_THAT(run<int64_t>(ops::argmax(root_, a, 0)), ElementsAre(1, 1, 1));
  EXPECT_THAT(run(ops::logsumexp(root_, matrix(1, 2, {0, 0}), {1})), near({std::log(2.f)}));
}

TEST_F(OpsTest, ElementsAreComparedAndChosen) {
  const Output a = floats({1, 2, 3}), b = floats({3, 2, 1});
  EXPECT_THAT(run<bool>(ops::eq(root_, a, b)), ElementsAre(false, true, false));
  EXPECT_THAT(run<bool>(ops::lt(root_, a, b)), ElementsAre(true, false, false));
  EXPECT_THAT(run<bool>(ops::ge(root_, a, b)), ElementsAre(false, true, true));
  EXPECT_THAT(run(ops::where(root_, ops::gt(root_, a, b), a, -b)), ElementsAre(-3, -2, 3));
  EXPECT_THAT(run(ops::maximum(root_, a, b)), ElementsAre(3, 2, 3));
  EXPECT_THAT(run<int32_t>(ops::cast(root_, a, kInt32)), ElementsAre(1, 2, 3));
}

TEST_F(OpsTest, PartsAreTakenAndPutTogether) {
  const Output a = matrix(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run(ops::slice(root_, a, 1, 1)), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(run(ops::slice(root_, a, 1, 0, 3, 2)), ElementsAre(1, 3, 4, 6));
  const auto parts = ops::split(root_, a, {1, 2}, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(run(parts[0]), ElementsAre(1, 4));
  EXPECT_THAT(run(ops::concat(root_, {parts[1], parts[0]}, 1)), ElementsAre(2, 3, 1, 5, 6, 4));
  EXPECT_EQ(ops::stack(root_, {a, a}).shape(), Shape({2, 2, 3}));
  EXPECT_THAT(run(ops::transpose(root_, a, 0, 1)), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(run(ops::permute(root_, a, {1, 0})), ElementsAre(1, 4, 2, 5, 3, 6));
  const Output columns = ops::constant(root_, Tensor::of<int64_t>({2, 0}));
  EXPECT_THAT(run(ops::index_select(root_, a, 1, columns)), ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(run(ops::expand(root_, parts[0], {2, 2})), ElementsAre(1, 1, 4, 4));
  EXPECT_EQ(ops::squeeze(root_, ops::unsqueeze(root_, a, 1), 1).shape(), Shape({2, 3}));
  EXPECT_EQ(ops::reshape(root_, a, {3, -1}).shape(), Shape({3, 2}));
  EXPECT_THAT(run(ops::embedding(root_, ops::transpose(root_, a, 0, 1), columns)), ElementsAre(3, 6, 1, 4));
}

TEST_F(OpsTest, AnIndexThatATableHasNoRowForIsNamed) {
  const Output table = matrix(5, 2, std::vector<float>(10, 1));
  const Output ids = ops::placeholder(root_, kInt64, {-1}, "ids");
  const Output pairs = ops::placeholder(root_, kInt32, {2, 2}, "pairs");
  const Output rows = ops::embedding(root_, table, ids);
  const auto message = [&](const Output& output, const Feeds& feeds) -> std::string {
    try {
      run(output, feeds);
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(rows, {{ids, Tensor::of<int64_t>({1, 5})}}),
            "embedding (aten::embedding): index 5 at position 1 is out of range: the table has 5 rows");
  EXPECT_THAT(message(rows, {{ids, Tensor::of<int64_t>({-1, 1})}}), ::testing::HasSubstr("index -1 at position 0"));
  EXPECT_THAT(message(ops::embedding(root_, table, pairs), {{pairs, Tensor::of<int32_t>(Shape{2, 2}, {0, 4, 7, 1})}}),
              ::testing::HasSubstr("index 7 at position [1,0] is out of range: the table has 5 rows"));
  EXPECT_THAT(
      message(ops::index_select(root_, table, 1, ids), {{ids, Tensor::of<int64_t>({1, 2})}}),
      ::testing::HasSubstr("(aten::index_select): index 2 at position 1 is out of range: dimension 1 has size 2"));
}

TEST_F(OpsTest, ImagesOfAnUnknownBatchKeepTheirShapes) {
  const Output images = ops::placeholder(root_, kFloat, {-1, 1, 8, 8}, "images");
  const Output features = ops::conv2d_layer(root_, images, 4, 3, {.padding = 1});
  EXPECT_EQ(features.shape(), Shape({-1, 4, 8, 8}));
  const Output pooled = ops::max_pool2d(root_, ops::relu(root_, features), 2);
  EXPECT_EQ(pooled.shape(), Shape({-1, 4, 4, 4}));
  EXPECT_EQ(ops::avg_pool2d(root_, pooled, {2, 4}).shape(), Shape({-1, 4, 2, 1}));
  const Output flat = ops::flatten(root_, pooled);
  EXPECT_EQ(flat.shape(), Shape({-1, 64}));
  EXPECT_EQ(ops::dense(root_, flat, 10).shape(), Shape({-1, 10}));
  EXPECT_TRUE(graph_.find_operation("conv2d/weights").valid());
  EXPECT_TRUE(graph_.find_operation("dense/bias").valid());
  EXPECT_THROW(ops::dense(root_, ops::placeholder(root_, kFloat, {-1, -1}), 3), InvalidArgumentError);
}

TEST_F(OpsTest, AConvolutionIsRight) {
  const Output image = ops::constant(root_, Tensor::of<float>(Shape{1, 1, 2, 2}, {1, 2, 3, 4}));
  const Output filter = ops::constant(root_, Tensor::of<float>(Shape{1, 1, 2, 2}, {1, 10, 100, 1000}));
  EXPECT_THAT(run(ops::conv2d(root_, image, filter, floats({0.5}))), ElementsAre(4321.5));
}

TEST_F(OpsTest, LossesAreRight) {
  const Output logits = matrix(2, 2, {0, 0, 1, 1});
  const Output labels = ops::constant(root_, Tensor::of<int64_t>({0, 1}));
  const float half = std::log(2.f);
  EXPECT_THAT(run(ops::cross_entropy_loss(root_, logits, labels)), near({half}));
  EXPECT_THAT(run(ops::cross_entropy_loss(root_, logits, labels, ops::Reduction::kSum)), near({2 * half}));
  EXPECT_THAT(run(ops::cross_entropy_loss(root_, logits, labels, ops::Reduction::kNone)), near({half, half}));
  const Output target = matrix(2, 2, {0, 2, 1, 1});
  EXPECT_THAT(run(ops::mse_loss(root_, logits, target)), ElementsAre(1));
  EXPECT_THAT(run(ops::binary_cross_entropy_with_logits(root_, floats({0}), floats({1}))), near({half}));
  EXPECT_THAT(run(ops::l2_loss(root_, floats({3, 4}))), ElementsAre(12.5));
  EXPECT_THAT(run(ops::softmax(root_, logits)), ElementsAre(0.5, 0.5, 0.5, 0.5));
}

TEST_F(OpsTest, LayersAreNormalized) {
  const Output x = matrix(2, 2, {1, 3, 5, 5});
  EXPECT_THAT(run(ops::layer_norm(root_, x, floats({1, 2}), floats({0, 1}), 0)).front(), FloatNear(-1, 1e-5f));
}

TEST_F(OpsTest, BatchNormalizationKeepsItsStatistics) {
  const ops::BatchNormVariables variables = ops::batch_norm_variables(root_, 1);
  const Output x = matrix(3, 1, {1, 2, 6});
  const Output training = ops::batch_norm(root_, x, variables, true, 0.5, 0);
  const Output inference = ops::batch_norm(root_, x, variables, false, 0.5, 0);
  auto session = new_session("", graph_);
  session->run(ops::global_variables_initializer(root_));
  const Tensor before = session->run(variables.running_mean);
  EXPECT_EQ(session->run(inference).flat<float>()[2], 6);
  const Tensor normalized = session->run(training);
  EXPECT_NEAR(normalized.flat<float>()[0], -2 / std::sqrt(14.f / 3), 1e-5);
  EXPECT_NEAR(session->run(variables.running_mean).item<float>(), 1.5, 1e-5);       // half of 0, half of 3
  EXPECT_NEAR(session->run(variables.running_var).item<float>(), 0.5 + 3.5, 1e-5);  // half of 1, half of 14 / 2
  EXPECT_EQ(before.item<float>(), 0);
  EXPECT_EQ(ops::trainable_variables(graph_).size(), 2u);
  EXPECT_EQ(ops::global_variables(graph_).size(), 4u);
}

TEST_F(OpsTest, RandomNumbersFollowTheSeedAndTheOperation) {
  graph_.set_seed(11);
  const Output a = ops::randn(root_, {4}), b = ops::randn(root_, {4});
  EXPECT_EQ(run(a), run(a));
  EXPECT_NE(run(a), run(b));
  auto session = new_session("", graph_);
  EXPECT_FALSE(identical(session->run(a), session->run(a)));
}

TEST_F(OpsTest, InitialValuesHaveTheirSpread) {
  graph_.set_seed(3);
  const auto deviation = [](const std::vector<float>& values) {
    double squares = 0;
    for (float value : values) squares += value * value;
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  const auto largest = [](const std::vector<float>& values) {
    float found = 0;
    for (float value : values) found = std::max(found, std::abs(value));
    return found;
  };
  const auto truncated = run(ops::truncated_normal(root_, {200, 100}, 0.5));
  EXPECT_LE(largest(truncated), 1.0001f);
  EXPECT_GT(largest(truncated), 0.95f);
  EXPECT_NEAR(deviation(truncated), 0.5 * 0.8796, 0.01);
  const auto glorot = run(ops::glorot_uniform(root_, {200, 100}));
  EXPECT_LE(largest(glorot), std::sqrt(6.f / 300));
  EXPECT_NEAR(deviation(glorot), std::sqrt(2.0 / 300), 0.002);
  const auto he = run(ops::he_normal(root_, {50, 16, 3, 3}));
  EXPECT_NEAR(deviation(he), std::sqrt(2.0 / (16 * 9)), 0.003);
  EXPECT_LE(largest(he), 2 * std::sqrt(2.0 / (16 * 9)) / 0.8796) << "it is truncated";
  EXPECT_NEAR(deviation(run(ops::he_normal(root_, {200, 100}))), std::sqrt(2.0 / 200), 0.003);
  using Scaling = ops::VarianceScaling;
  const auto scaled = [&](const Scaling& scaling) { return run(ops::variance_scaling(root_, {200, 100}, scaling)); };
  EXPECT_NEAR(deviation(scaled({})), std::sqrt(1.0 / 200), 0.002);
  EXPECT_NEAR(deviation(scaled({4, Scaling::Mode::kFanOut})), std::sqrt(4.0 / 100), 0.004);
  const auto whole = scaled({.distribution = Scaling::Distribution::kUntruncatedNormal});
  EXPECT_NEAR(deviation(whole), std::sqrt(1.0 / 200), 0.002);
  EXPECT_GT(largest(whole), 3 * std::sqrt(1.0 / 200));
  const auto even = scaled({1, Scaling::Mode::kFanAverage, Scaling::Distribution::kUniform});
  EXPECT_NEAR(deviation(even), std::sqrt(2.0 / 300), 0.002);
  EXPECT_LE(largest(even), std::sqrt(6.f / 300));
  EXPECT_THROW(scaled({.scale = 0}), InvalidArgumentError);
  EXPECT_THAT(run(ops::full(root_, {2}, 1.5)), ElementsAre(1.5, 1.5));
  EXPECT_EQ(ops::zeros(root_, {2}, kDouble).dtype(), kDouble);
}

TEST_F(OpsTest, DropoutKeepsTheMean) {
  graph_.set_seed(5);
  const auto values = run(ops::dropout(root_, ops::ones(root_, {10000}), 0.25));
  double sum = 0;
  for (float value : values) {
    EXPECT_TRUE(value == 0 || std::abs(value - 1 / 0.75f) < 1e-6f);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 1, 0.03);
  const Output x = floats({1});
  EXPECT_EQ(ops::dropout(root_, x, 0), x);
  EXPECT_THROW(ops::dropout(root_, x, 1), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
