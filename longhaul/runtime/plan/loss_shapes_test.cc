// What a mismatch of shapes says where a training step meets it.
#include "longhaul/runtime/plan/loss_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class LossShapes : public ::testing::Test {
 protected:
  using Loss = Output (*)(const Scope&, const Output&, const Output&, ops::Reduction, std::string_view);

  static Tensor zeros(Shape shape) {
    Tensor tensor(kFloat, std::move(shape));
    for (float& value : tensor.mutable_flat<float>()) value = 0;
    return tensor;
  }

  // A step on so many predictions and targets.
  std::string message_of_step(const Output& loss, Shape x_shape, Tensor target) {
    const Operation train = GradientDescentOptimizer(0.1).minimize(loss, ops::global_step(root));
    const auto session = new_session("", graph);
    session->run(ops::global_variables_initializer(root));
    return refusal_of([&] { session->run(train, {{x, zeros(x_shape)}, {y, std::move(target)}}); });
  }

  Graph graph;
  Scope root{graph};
  Output x = ops::placeholder(root, kFloat, {-1, 4}, "x");
  Output y = ops::placeholder(root, kFloat, {-1, 1}, "y");
  Output prediction = ops::dense(root, x, 1, "model");
};

TEST_F(LossShapes, ABatchOfAnotherSizeIsRefusedByTheLossOfEachKindAndByName) {
  for (const Loss make :
       {Loss(ops::mse_loss), Loss(ops::smooth_l1_loss), Loss(ops::binary_cross_entropy_with_logits)}) {
    const Output loss = make(root.sub("net"), prediction, y, ops::Reduction::kMean, "loss");
    for (const int64_t targets : {32, 1}) {
      const std::string size = std::to_string(targets);
      EXPECT_THAT(message_of_step(loss, {64, 4}, zeros({targets, 1})),
                  AllOf(StartsWith(loss.op().name() + " (aten::"), HasSubstr("the prediction model/"),
                        HasSubstr("is [64,1]"), HasSubstr("the target y:0 is [" + size + ",1]"),
                        HasSubstr("must have the same shape"), Not(HasSubstr("gradients/"))))
          << loss.op().type();
    }
    EXPECT_EQ(message_of_step(loss, {64, 4}, zeros({64, 1})), "") << loss.op().type();
  }
}

TEST_F(LossShapes, ABatchOfAnotherSizeIsRefusedByTheCrossEntropy) {
  const Output labels = ops::placeholder(root, kInt64, {-1}, "labels");
  const Output loss = ops::cross_entropy_loss(root, ops::dense(root, x, 3, "logits"), labels);
  const Operation train = GradientDescentOptimizer(0.1).minimize(loss, ops::global_step(root));
  const auto session = new_session("", graph);
  session->run(ops::global_variables_initializer(root));
  EXPECT_THAT(
      refusal_of([&] { session->run(train, {{x, zeros({64, 4})}, {labels, Tensor::of(std::vector<int64_t>(32))}}); }),
      AllOf(StartsWith("cross_entropy_loss/nll_loss (aten::nll_loss_forward)"), HasSubstr("64"), HasSubstr("32"),
            Not(HasSubstr("gradients/"))));
}

TEST_F(LossShapes, ATargetThatWouldBeBroadcastIsRefusedWhenTheGraphIsBuilt) {
  const Output flat = ops::placeholder(root, kFloat, {-1}, "flat");
  EXPECT_THAT(refusal_of([&] { ops::mse_loss(root.sub("net"), prediction, flat); }),
              AllOf(StartsWith("net/mse_loss: the prediction model/"), HasSubstr("is [?,1]"),
                    HasSubstr("the target flat:0 is [?]"), HasSubstr("ops::reshape")));
  EXPECT_THROW(ops::smooth_l1_loss(root, prediction, flat), InvalidArgumentError);
  EXPECT_THROW(ops::binary_cross_entropy_with_logits(root, prediction, flat), InvalidArgumentError);
}

TEST_F(LossShapes, TheLossItselfIsRefusedAsItsGradientIs) {
  const Output loss = ops::mse_loss(root, prediction, y);
  const auto session = new_session("", graph);
  session->run(ops::global_variables_initializer(root));
  EXPECT_THAT(refusal_of([&] { session->run(loss, {{x, zeros({64, 4})}, {y, zeros({1, 1})}}); }),
              HasSubstr("the target y:0 is [1,1]"));
}

TEST_F(LossShapes, AnErrorInAGradientNamesWhatWasDifferentiated) {
  const Output scaled = ops::mul(root.sub("net"), prediction, y);
  const Output grad = ops::placeholder(root, kFloat, {-1, 1}, "grad");
  const Output gradient = ops::gradients(root, {scaled}, {prediction}, {grad})[0];
  const auto session = new_session("", graph);
  session->run(ops::global_variables_initializer(root));
  const std::string message =
      refusal_of([&] { session->run(gradient, {{x, zeros({2, 4})}, {y, zeros({3, 1})}, {grad, zeros({2, 1})}}); });
  EXPECT_THAT(message, AllOf(StartsWith(scaled.op().name() + " (aten::mul"), HasSubstr("y:0 float[?,1]"),
                             HasSubstr("its gradient cannot be computed: gradients/")));
}

TEST_F(LossShapes, TheForwardOperationIsFoundInScopes) {
  const Output inner = ops::square(root.sub("gradients_of_interest"), prediction);
  const Output gradient = ops::gradients(root.sub("train"), {inner}, {prediction})[0];
  EXPECT_EQ(forward_of(gradient.op()), inner.op());
  EXPECT_FALSE(forward_of(inner.op()));
}

}  // namespace
}  // namespace longhaul
