#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/import_graph_def.h"
#include "longhaul/ops/gradients/derivative.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/ops/doubles_fixture.h"
#include "longhaul/runtime/ops/gradient_cases_test.h"
#include "longhaul/session/session.h"

namespace longhaul {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

int count_of_type(const Graph& graph, const std::string& type) {
  const auto all = graph.operations();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const Operation& op) { return op.type() == type; }));
}

// libtorch's autograd, as an operation: the reference.
std::vector<Output> tape_gradients(const Scope& scope, const Operation& op, const std::vector<int>& outputs,
                                   const std::vector<Output>& grads, const std::vector<int64_t>& wrt) {
  Attrs attrs = op.attrs();
  attrs["forward"] = op.type();
  attrs["wrt"] = wrt;
  attrs["num_inputs"] = static_cast<int64_t>(op.inputs().size());
  attrs["outputs"] = std::vector<int64_t>(outputs.begin(), outputs.end());
  std::vector<Output> inputs = op.inputs();
  inputs.insert(inputs.end(), grads.begin(), grads.end());
  const Operation tape = scope.add("TapeGradient", "reference", inputs, attrs);
  std::vector<Output> found;
  for (int i = 0; i < tape.num_outputs(); ++i) found.push_back(tape.output(i));
  return found;
}

class DerivativeTest : public ::testing::TestWithParam<GradientCase> {
 protected:
  // Where the sizes are unknown, it is that of the first argument's first dimension, and all first ones of that size.
  void build(bool unknown_batch) {
    ops::NamedArgs arguments = GetParam().constants;
    for (const TensorArgument& argument : GetParam().tensors) add_tensor(argument, unknown_batch, &arguments);
    op_ = ops::aten(root_, GetParam().type, "forward", arguments);
    for (int i : GetParam().outputs) {
      ys_.push_back(op_.output(i));
      grad_ys_.push_back(ops::placeholder(root_, ys_.back().dtype(), ys_.back().shape(), "grad"));
    }
  }

  void add_tensor(const TensorArgument& argument, bool unknown_batch, ops::NamedArgs* arguments) {
    const std::vector<int64_t>& first = GetParam().tensors[0].shape;
    Shape shape(argument.shape);
    if (unknown_batch && !first.empty() && !argument.shape.empty() && argument.shape[0] == first[0]) {
      std::vector<int64_t> dims = argument.shape;
      dims[0] = -1;
      shape = Shape(dims);
    }
    const DType dtypes[] = {kDouble, kDouble, kDouble, kInt64, kBool};
    const Output x = ops::placeholder(root_, dtypes[static_cast<int>(argument.values)], shape, argument.name);
    feeds_.emplace_back(x, random_values(argument));
    if (argument.values == Values::kReal || (argument.values == Values::kPositive && argument.name == "self")) add_x(x);
    // An argument of several tensors is one in the list of arguments.
    if (!arguments->empty() && arguments->back().first == argument.name) {
      auto& list = std::get<std::vector<Output>>(arguments->back().second);
      list.push_back(x);
    } else if (argument.name == "tensors") {
      arguments->emplace_back(argument.name, std::vector<Output>{x});
    } else if (argument.values == Values::kBool && argument.name == "target") {
      arguments->emplace_back(argument.name, ops::cast(root_, x, kDouble));
    } else {
      arguments->emplace_back(argument.name, x);
    }
  }

  void add_x(const Output& x) {
    wrt_.push_back(static_cast<int64_t>(feeds_.size()) - 1);
    xs_.push_back(x);
  }

  Tensor random_values(const TensorArgument& argument) {
    Tensor tensor = random_reals(kDouble, Shape(argument.shape), argument.values != Values::kReal);
    if (argument.values != Values::kIndex && argument.values != Values::kBool) return tensor;
    std::vector<int64_t> numbers(static_cast<size_t>(tensor.num_elements()));
    for (int64_t& number : numbers) number = static_cast<int64_t>(random_()) % argument.limit;
    if (argument.values == Values::kIndex) return Tensor::of(Shape(argument.shape), numbers);
    Tensor bools(kBool, Shape(argument.shape));
    std::copy(numbers.begin(), numbers.end(), bools.mutable_flat<bool>().begin());
    return bools;
  }

  Tensor random_reals(DType dtype, const Shape& shape, bool positive) {
    Tensor tensor(kDouble, shape);
    std::normal_distribution<double> normal;
    for (double& value : tensor.mutable_flat<double>()) {
      value = normal(random_);
      if (positive) value = std::abs(value) + 0.3;
    }
    if (dtype == kDouble) return tensor;
    Tensor floats(kFloat, shape);
    std::copy_n(tensor.flat<double>().begin(), tensor.num_elements(), floats.mutable_flat<float>().begin());
    return floats;
  }

  void feed_gradients(Session& session) {
    for (size_t i = 0; i < ys_.size(); ++i) {
      const Tensor y = session.run(ys_[i], feeds_);
      feeds_.emplace_back(grad_ys_[i], random_reals(y.dtype(), y.shape(), false));
    }
  }

  // All at once, then each alone, so that derivatives leave out what is not needed.
  void expect_autograds_gradients() {
    const std::vector<Output> together = ops::gradients(root_, ys_, xs_, grad_ys_);
    std::vector<Output> alone;
    for (const Output& x : xs_) alone.push_back(ops::gradients(root_, ys_, {x}, grad_ys_)[0]);
    EXPECT_EQ(count_of_type(graph_, "TapeGradient"), 0);
    const std::vector<Output> reference = tape_gradients(root_, op_, GetParam().outputs, grad_ys_, wrt_);
    auto session = new_session("", graph_);
    feed_gradients(*session);
    for (size_t i = 0; i < xs_.size(); ++i) {
      SCOPED_TRACE(xs_[i].name());
      const auto values = session->run({Fetch(reference[i]), Fetch(together[i]), Fetch(alone[i])}, feeds_);
      EXPECT_TRUE(together[i].shape().compatible_with(xs_[i].shape()));
      for (const Tensor& value : {values[1], values[2]}) {
        EXPECT_EQ(value.shape(), values[0].shape());
        EXPECT_EQ(value.dtype(), values[0].dtype());
        EXPECT_THAT(doubles(value), Pointwise(DoubleNear(1e-6), doubles(values[0])));
      }
    }
  }

  Graph graph_;
  Scope root_{graph_};
  std::mt19937 random_{20};
  Feeds feeds_;
  Operation op_;
  std::vector<Output> xs_, ys_, grad_ys_;
  std::vector<int64_t> wrt_;
};

TEST_P(DerivativeTest, IsAutogradsWhenSizesAreKnown) {
  build(/*unknown_batch=*/false);
  expect_autograds_gradients();
}

TEST_P(DerivativeTest, IsAutogradsWhenTheBatchIsUnknown) {
  build(/*unknown_batch=*/true);
  expect_autograds_gradients();
}

std::string gradient_name(const ::testing::TestParamInfo<GradientCase>& info) {
  std::string name = info.param.type.substr(6) + "_" + std::to_string(info.index);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Registered, DerivativeTest, ::testing::ValuesIn(gradient_cases()), gradient_name);

TEST(Derivatives, AreAllInTheTableOfTests) {
  std::set<std::string> tested, registered;
  for (const GradientCase& test : gradient_cases()) tested.insert(test.type);
  for (const auto& [type, derivative] : ops::derivatives()) {
    if (derivative.function != nullptr) registered.insert(type);
  }
  EXPECT_EQ(tested, registered);
}

class GradientTest : public ::testing::Test {
 protected:
  std::vector<double> run(const Output& output, const Feeds& feeds = {}) {
    return doubles(new_session("", graph_)->run(output, feeds));
  }
  // A gradient by differences, for operations of one input.
  static constexpr double kStep = 1e-6;
  std::vector<double> differences(const Output& y, const Output& x, const Tensor& at) {
    const Output sum = ops::sum(root_, y);
    auto session = new_session("", graph_);
    std::vector<double> found;
    for (int64_t i = 0; i < at.num_elements(); ++i) {
      double sums[2];
      for (int side : {0, 1}) {
        std::vector<double> moved = doubles(at);
        moved[static_cast<size_t>(i)] += side == 0 ? -kStep : kStep;
        sums[side] = session->run(sum, {{x, Tensor::of(at.shape(), moved)}}).item<double>();
      }
      found.push_back((sums[1] - sums[0]) / (2 * kStep));
    }
    return found;
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(GradientTest, GoesByTheTapeWhereNoDerivativeIsRegistered) {
  const Tensor at = Tensor::of<double>({2, 3}, {0.3, -1.2, 0.7, 2.1, -0.4, 0.9});
  const Output x = ops::placeholder(root_, kDouble, {-1, 3}, "x");
  const Output base = ops::constant(root_, Tensor::of<double>({0.5, 1.5, 2.5}));
  const std::vector<Output> ys = {
      ops::pow(root_, base, x),
      ops::aten(root_, "aten::cumsum", "cumsum", {{"self", x}, {"dim", int64_t{1}}}).output(),
      ops::aten(root_, "aten::linalg_vector_norm", "norm", {{"self", x}, {"ord", 3.0}}).output(),
      ops::aten(root_, "aten::var", "var", {{"self", x}, {"unbiased", true}}).output(),
  };
  for (const Output& y : ys) {
    SCOPED_TRACE(y.name());
    const int before = count_of_type(graph_, "TapeGradient");
    const Output gradient = ops::gradients(root_, {y}, {x})[0];
    EXPECT_EQ(count_of_type(graph_, "TapeGradient"), before + 1);
    EXPECT_THAT(run(gradient, {{x, at}}), Pointwise(DoubleNear(1e-4), differences(y, x, at)));
  }
}

TEST_F(GradientTest, OfAnArgumentGivenByATensorGoesByTheTape) {
  const Output x = ops::placeholder(root_, kDouble, {2}, "x");
  const Output factor = ops::constant(root_, 3.0);
  const Output y = ops::aten(root_, "aten::mul.Scalar", "mul", {{"self", x}, {"other", factor}}).output();
  EXPECT_THAT(run(ops::gradients(root_, {y}, {x})[0], {{x, Tensor::of<double>({1, 2})}}), ::testing::ElementsAre(3, 3));
}

TEST_F(GradientTest, OfComplexNumbersGoesByTheTape) {
  const Output x = ops::placeholder(root_, kComplex64, {}, "x");
  const Output y = ops::aten(root_, "aten::abs", "abs", {{"self", x * x}}).output();
  const Output gradient = ops::gradients(root_, {y}, {x})[0];
  EXPECT_EQ(count_of_type(graph_, "TapeGradient"), 2);
  const std::complex<float> at(3, 4);
  const Tensor value = new_session("", graph_)->run(gradient, {{x, Tensor::scalar(at)}});
  EXPECT_LT(std::abs(value.flat<std::complex<float>>()[0] - 2.f * at), 1e-4f);  // of |x|^2
}

TEST_F(GradientTest, AddsUpOverAllUses) {
  const Output x = ops::placeholder(root_, kDouble, {}, "x");
  const Output y = x * x + x * 3.0 - x / 2.0 + x;
  EXPECT_THAT(run(ops::gradients(root_, {y}, {x})[0], {{x, Tensor::scalar(5.0)}}), Pointwise(DoubleNear(1e-9), {13.5}));
  EXPECT_THAT(run(ops::gradients(root_, {y, x}, {x})[0], {{x, Tensor::scalar(5.0)}}),
              Pointwise(DoubleNear(1e-9), {14.5}));
}

TEST_F(GradientTest, OfAGradientIsTheSecondDerivative) {
  const Output x = ops::placeholder(root_, kDouble, {}, "x");
  const Output first = ops::gradients(root_, {x * x * x}, {x})[0];
  const Output second = ops::gradients(root_, {first}, {x})[0];
  EXPECT_THAT(run(second, {{x, Tensor::scalar(2.0)}}), Pointwise(DoubleNear(1e-9), {12.0}));
}

TEST_F(GradientTest, AfterAnImportIsTheOneOfTheOriginal) {  // SA-98
  const Output x = ops::placeholder(root_, kDouble, {3}, "x");
  const Output y = ops::sum(root_, ops::exp(root_, x) * x);
  Graph twin;
  const auto imported = import_graph_def(twin, to_graph_def(graph_), {.return_elements = {x.name(), y.name()}});
  const auto of_twin = [&](int i) { return std::get<Output>(imported.returned[static_cast<size_t>(i)]); };
  const Output gradient = ops::gradients(root_, {y}, {x})[0];
  const Output twins = ops::gradients(Scope(twin), {of_twin(1)}, {of_twin(0)})[0];
  EXPECT_EQ(twins.name(), gradient.name());
  EXPECT_EQ(to_graph_def(twin).DebugString(), to_graph_def(graph_).DebugString());
}

TEST_F(GradientTest, IsNotThereWithoutAPath) {
  const Output x = ops::placeholder(root_, kFloat, {2, 2}, "x");
  const Output other = ops::placeholder(root_, kFloat, {2, 2}, "other");
  const Output unsmooth = ops::cast(root_, ops::argmax(root_, x), kFloat);
  for (const Output& y : {other, unsmooth, ops::stop_gradient(root_, x),
                          ops::aten(root_, "aten::floor", "floor", {{"self", x}}).output()})
    EXPECT_FALSE(ops::gradients(root_, {y}, {x})[0].valid()) << y.name();
  EXPECT_TRUE(ops::gradients(root_, {ops::stop_gradient(root_, x) * x}, {x})[0].valid());
}

TEST_F(GradientTest, OfAVariableCountsAllItsReads) {
  const Variable v = ops::variable(root_, "v", Tensor::scalar(3.0));
  const Output y = v * ops::read_value(root_, v);
  const Output gradient = ops::gradients(root_, {y}, {v})[0];
  auto session = new_session("", graph_);
  session->run(v.initializer());
  EXPECT_EQ(session->run(gradient).item<double>(), 6);
}

TEST_F(GradientTest, ThroughSizesThatAreTensors) {
  const Output x = ops::placeholder(root_, kDouble, {-1, 2}, "x");
  const Output like = ops::placeholder(root_, kDouble, Shape::unknown_rank(), "like");
  const Output y = ops::reshape(root_, x, ops::shape(root_, like));
  const Output gradient = ops::gradients(root_, {y}, {x}, {like})[0];
  EXPECT_THAT(run(gradient, {{x, Tensor::of<double>({2, 2}, {1, 2, 3, 4})}, {like, Tensor::of<double>({5, 6, 7, 8})}}),
              ::testing::ElementsAre(5, 6, 7, 8));
}

TEST_F(GradientTest, ThroughBroadcastOfUnknownRank) {
  const Output x = ops::placeholder(root_, kDouble, Shape::unknown_rank(), "x");
  const Output y = ops::placeholder(root_, kDouble, Shape::unknown_rank(), "y");
  const auto gradients = ops::gradients(root_, {x + y}, {x, y});
  const Feeds feeds = {{x, Tensor::of<double>({2, 1}, {1, 2})}, {y, Tensor::of<double>({1, 2, 3})}};
  auto session = new_session("", graph_);
  EXPECT_THAT(doubles(session->run(gradients[0], feeds)), ::testing::ElementsAre(3, 3));
  EXPECT_THAT(doubles(session->run(gradients[1], feeds)), ::testing::ElementsAre(2, 2, 2));
}

TEST_F(GradientTest, ThroughRandomNumbersIsRefusedUnlessTheyAreOneFactor) {
  const Output x = ops::placeholder(root_, kFloat, {4}, "x");
  const Output wild = ops::aten(root_, "aten::dropout", "wild", {{"input", x}, {"p", 0.5}, {"train", true}}).output();
  try {
    ops::gradients(root_, {wild}, {x});
    FAIL() << "no error";
  } catch (const UnimplementedError& e) {
    EXPECT_THAT(e.what(), HasSubstr("wild (aten::dropout)"));
  }
  const Output dropped = ops::dropout(root_, x, 0.5);
  const Output gradient = ops::gradients(root_, {dropped}, {x})[0];
  const auto values =
      new_session("", graph_)->run({Fetch(dropped), Fetch(gradient)}, {{x, Tensor::of<float>({1, 1, 1, 1})}});
  EXPECT_EQ(doubles(values[0]), doubles(values[1]));
}

TEST_F(GradientTest, OfADenseNetIsWhatOneWritesByHand) {
  const Output x = ops::placeholder(root_, kFloat, {-1, 8}, "x");
  const Output labels = ops::placeholder(root_, kInt64, {-1}, "labels");
  const Output hidden = ops::relu(root_, ops::dense(root_, x, 4));
  const Output loss = ops::cross_entropy_loss(root_, ops::dense(root_, hidden, 3), labels);
  std::vector<Output> variables;
  for (const VariableInfo& variable : ops::trainable_variables(graph_)) variables.push_back(variable.ref);
  const int before = graph_.num_operations();
  ops::gradients(root_, {loss}, variables);
  std::vector<std::string> types;
  for (const Operation& op : graph_.operations()) {
    if (op.id() >= before) types.push_back(op.type());
  }
  EXPECT_THAT(types,
              ::testing::ElementsAre("Const", "aten::nll_loss_backward", "aten::_log_softmax_backward_data",
                                     "aten::sum.dim_IntList", "aten::t", "aten::mm", "aten::t", "aten::mm",
                                     "aten::threshold_backward", "aten::sum.dim_IntList", "aten::t", "aten::mm"));
}

TEST_F(GradientTest, OfWhatIsNotARealTensorIsRefused) {
  const Output x = ops::placeholder(root_, kFloat, {2}, "x");
  EXPECT_THROW(ops::gradients(root_, {ops::argmax(root_, x)}, {x}), InvalidArgumentError);
  const Output wrong = ops::placeholder(root_, kFloat, {3}, "wrong");
  EXPECT_THROW(ops::gradients(root_, {x * 2.0}, {x}, {wrong}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
