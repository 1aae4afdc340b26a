#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/training/accumulators.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/scripted_session.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AccumulatorOpsTest : public ::testing::Test {
 protected:
  Output step(int64_t number) { return ops::constant(root, number); }
  void apply(const ConditionalAccumulator& accumulator, float gradient, int64_t local_step = 0) {
    session.run(accumulator.apply_grad(root, ops::constant(root, gradient), step(local_step)));
  }
  // A gradient of two columns; the rows' values are their numbers.
  IndexedSlices rows(std::vector<int64_t> indices) {
    std::vector<float> values;
    for (const int64_t index : indices) values.insert(values.end(), 2, static_cast<float>(index));
    const Shape shape{static_cast<int64_t>(indices.size()), 2};
    return {.values = ops::constant(root, Tensor::of(shape, values)),
            .indices = ops::constant(root, Tensor::of(std::move(indices))),
            .num_rows = step(5)};
  }

  Graph graph;
  Scope root{graph};
  testing::ScriptedSession session{graph};
};

TEST_F(AccumulatorOpsTest, HasTensorFlowsAttrs) {  // SY-7
  const ConditionalAccumulator accumulator(root, kFloat, {.shape = {1, 5}, .name = "Q"});
  const Operation op = accumulator.handle().op();
  EXPECT_EQ(op.name(), "Q");
  EXPECT_EQ(op.type(), "ConditionalAccumulator");
  EXPECT_EQ(op.attr<DType>("dtype"), kFloat);
  EXPECT_EQ(op.attr<Shape>("shape"), (Shape{1, 5}));
  EXPECT_EQ(op.attr<std::string>("container"), "");
  EXPECT_EQ(op.attr<std::string>("shared_name"), "");
  EXPECT_EQ(op.attr<std::string>("reduction_type"), "MEAN");
}

TEST_F(AccumulatorOpsTest, GivesMeansStepByStep) {  // SY-7
  const ConditionalAccumulator accumulator(root, kFloat, {.shape = Shape{}});
  const Output mean = accumulator.take_grad(root, 1), count = accumulator.num_accumulated(root);
  EXPECT_EQ(session.run(count).item<int32_t>(), 0);
  apply(accumulator, 10);
  apply(accumulator, 20);
  EXPECT_EQ(session.run(count).item<int32_t>(), 2);
  EXPECT_EQ(session.run(mean).item<float>(), 15);
  apply(accumulator, 100);  // of step 0
  EXPECT_EQ(session.run(accumulator.num_dropped(root)).item<int64_t>(), 1);
  apply(accumulator, 20, 1);
  apply(accumulator, 30, 1);
  EXPECT_EQ(session.run(mean).item<float>(), 25);
  session.run(accumulator.set_global_step(root, step(9)));
  apply(accumulator, 20, 8);
  EXPECT_EQ(session.run(count).item<int32_t>(), 0);
}

TEST_F(AccumulatorOpsTest, AnAccumulatorIsFoundByItsSharedName) {
  const ConditionalAccumulator one(root, kFloat, {.sum = true, .shared_name = "s"});
  const ConditionalAccumulator other(root, kFloat, {.sum = true, .shared_name = "s"});
  apply(one, 1);
  apply(other, 2);
  EXPECT_EQ(session.run(other.take_grad(root, 2)).item<float>(), 3);
  const ConditionalAccumulator different(root, kDouble, {.sum = true, .shared_name = "s"});
  EXPECT_THAT(refusal_of([&] { session.run(different.num_accumulated(root)); }),
              HasSubstr("Shared conditional accumulator 's' has sums of float"));
}

TEST_F(AccumulatorOpsTest, GivesRowsInTheirOrder) {
  const SparseConditionalAccumulator accumulator(root, kFloat, {.shape = {5, 2}});
  session.run(accumulator.apply_indexed_slices_grad(root, rows({4, 1}), step(0)));
  session.run(accumulator.apply_indexed_slices_grad(root, rows({1, 3}), step(0)));
  const IndexedSlices mean = accumulator.take_indexed_slices_grad(root, 2);
  const std::vector<Tensor> taken = session.run({mean.indices, mean.values, mean.num_rows});
  EXPECT_THAT(taken[0].flat<int64_t>(), ElementsAre(1, 3, 4));
  EXPECT_THAT(taken[1].flat<float>(), ElementsAre(1, 1, 3, 3, 4, 4));
  EXPECT_EQ(taken[2].item<int64_t>(), 5);
}

TEST_F(AccumulatorOpsTest, SaysWhatDoesNotFitWhenTheGraphIsBuilt) {
  EXPECT_THAT(refusal_of([&] { ConditionalAccumulator(root, kInt32); }), HasSubstr("floating-point, not int32"));
  EXPECT_THAT(refusal_of([&] {
                root.add("ConditionalAccumulator", "bad", {},
                         {{"dtype", kFloat}, {"reduction_type", std::string("Invalid")}});
              }),
              HasSubstr("Value for attr 'reduction_type' of \"Invalid\" is not in the list of allowed values"));
  const ConditionalAccumulator accumulator(root, kFloat, {.shape = {3, 2}});
  const Output vector = ops::constant(root, Tensor::of<float>({1, 2}));
  EXPECT_THAT(refusal_of([&] { accumulator.apply_grad(root, vector, step(0)); }),
              HasSubstr("Shape mismatch: expected [3,2], got [2]"));
  EXPECT_THAT(refusal_of([&] { accumulator.apply_grad(root, ops::constant(root, 1.0), step(0)); }),
              HasSubstr("is for gradients of float, but"));
  EXPECT_THAT(refusal_of([&] { accumulator.apply_grad(root, vector, ops::constant(root, Tensor::of<int64_t>({0}))); }),
              HasSubstr("Argument local_step must be a scalar, but its shape is [1]"));
  const SparseConditionalAccumulator without_rows(root, kFloat);
  EXPECT_THAT(refusal_of([&] { without_rows.take_indexed_slices_grad(root, 1); }), HasSubstr("give it in the options"));
}

TEST_F(AccumulatorOpsTest, ErrorsOfARunNameTheOperation) {
  const ConditionalAccumulator accumulator(root, kFloat);
  EXPECT_EQ(refusal_of([&] { session.run(accumulator.take_grad(root, -1, "take")); }),
            "take: Argument num_required must be positive, but was -1");
}

}  // namespace
}  // namespace longhaul
