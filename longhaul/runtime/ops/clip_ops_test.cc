#include "longhaul/ops/training/clip_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/gradients.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/session.h"

namespace longhaul {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::IsNan;
using ::testing::Pointwise;

constexpr float kInf = std::numeric_limits<float>::infinity();

class ClipTest : public ::testing::Test {
 protected:
  std::vector<float> run(const Output& output, const Feeds& feeds = {}) {
    const Tensor value = new_session("", graph_)->run(ops::cast(root_, output, kFloat), feeds);
    const auto values = value.flat<float>();
    return {values.begin(), values.end()};
  }
  Output floats(const std::vector<float>& values) { return ops::constant(root_, Tensor::of(values)); }
  static auto near(std::vector<float> values) { return Pointwise(FloatEq(), std::move(values)); }
  bool has_tape() const {
    for (const Operation& op : graph_.operations()) {
      if (op.type() == "TapeGradient") return true;
    }
    return false;
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(ClipTest, ValuesAreBroughtBetweenTwoLimits) {
  const Output x = floats({-3, -1, 0.5f, 2, NAN});
  EXPECT_THAT(run(ops::clip_by_value(root_, x, -1, 1)), ElementsAre(-1, -1, 0.5, 1, IsNan()));
  const Output high = ops::placeholder(root_, kFloat, {}, "high");
  EXPECT_THAT(run(ops::clip_by_value(root_, x, -2, high), {{high, Tensor::scalar(0.f)}}),
              ElementsAre(-2, -1, 0, 0, IsNan()));
  EXPECT_THAT(run(ops::clip_by_value(root_, floats({-3, 2}), -2, high), {{high, Tensor::scalar(-5.f)}}),
              ElementsAre(-2, -2))
      << "the lower limit counts where it is above the other";
}

TEST_F(ClipTest, ANormIsBroughtDownToItsLimit) {
  EXPECT_THAT(run(ops::clip_by_norm(root_, floats({-3, 0, 4}), 1)), near({-0.6f, 0, 0.8f}));
  EXPECT_THAT(run(ops::clip_by_norm(root_, floats({0, 0}), 1)), ElementsAre(0, 0));
}

TEST_F(ClipTest, WhatIsWithinItsLimitStaysAsItIs) {
  const std::vector<float> values = {0.1f, -0.7f, 0.3f};
  const Output x = floats(values);
  for (double limit : {0.9, 3.0, 49.0}) {
    EXPECT_EQ(run(ops::clip_by_norm(root_, x, limit)), values) << limit;
    EXPECT_EQ(run(ops::clip_by_average_norm(root_, x, limit)), values) << limit;
    EXPECT_EQ(run(ops::clip_by_global_norm(root_, std::vector{x}, limit).first[0]), values) << limit;
  }
}

TEST_F(ClipTest, EachPartAlongTheAxesHasItsOwnNorm) {
  const Output x = ops::constant(root_, Tensor::of<float>({2, 2}, {3, 4, 0.3f, 0.4f}));
  EXPECT_THAT(run(ops::clip_by_norm(root_, x, 1, {1})), near({0.6f, 0.8f, 0.3f, 0.4f}));
  EXPECT_THAT(run(ops::clip_by_norm(root_, x, 1, {-2})),
              near({3 / std::hypot(3.f, 0.3f), 4 / std::hypot(4.f, 0.4f), 0.3f / std::hypot(3.f, 0.3f),
                    0.4f / std::hypot(4.f, 0.4f)}));
}

TEST_F(ClipTest, AnAverageNormCountsTheElements) {
  EXPECT_THAT(run(ops::clip_by_average_norm(root_, floats({6, 8}), 1)), near({1.2f, 1.6f}));
  const Output any = ops::placeholder(root_, kFloat, {-1}, "any");
  EXPECT_THAT(run(ops::clip_by_average_norm(root_, any, 1), {{any, Tensor::of<float>({6, 8})}}), near({1.2f, 1.6f}));
}

TEST_F(ClipTest, TheGlobalNormIsThatOfAllTensorsTogether) {
  const std::vector<Output> tensors = {floats({1, 2}), Output(), ops::constant(root_, 2.f), floats({4})};
  EXPECT_THAT(run(ops::global_norm(root_, tensors)), ElementsAre(5));
  const auto [clipped, norm] = ops::clip_by_global_norm(root_, tensors, 2.5);
  EXPECT_THAT(run(norm), ElementsAre(5));
  EXPECT_THAT(run(clipped[0]), ElementsAre(0.5, 1));
  EXPECT_FALSE(clipped[1].valid());
  EXPECT_THAT(run(clipped[2]), ElementsAre(1));
  EXPECT_THAT(run(clipped[3]), ElementsAre(2));
}

TEST_F(ClipTest, TheGlobalNormMayBeGiven) {
  const std::vector<Output> tensors = {floats({1, 2})};
  const auto [clipped, norm] = ops::clip_by_global_norm(root_, tensors, 1, ops::constant(root_, 4.f));
  EXPECT_THAT(run(norm), ElementsAre(4));
  EXPECT_THAT(run(clipped[0]), ElementsAre(0.25, 0.5));
}

TEST_F(ClipTest, AGlobalNormThatIsNotFiniteMakesAllNan) {
  for (float bad : {kInf, -kInf, NAN}) {
    const std::vector<Output> tensors = {floats({1, bad}), floats({2})};
    for (const Output& clipped : ops::clip_by_global_norm(root_, tensors, 1).first)
      EXPECT_THAT(run(clipped), Each(IsNan())) << bad;
  }
}

// As TensorFlow 1.15.5 has it: what is infinite becomes NaN, what stands beside it 0, and other rows are as they are.
TEST_F(ClipTest, AnInfinityAlongAnAxisIsOfItsRowAlone) {
  for (float bad : {kInf, -kInf}) {
    const Output x = ops::reshape(root_, floats({bad, 1, 3, 4}), {2, 2});
    EXPECT_THAT(run(ops::clip_by_norm(root_, x, 1, {1})), ElementsAre(IsNan(), 0, FloatEq(0.6f), FloatEq(0.8f))) << bad;
  }
  const Output x = ops::reshape(root_, floats({1e30f, 1, 3, 4}), {2, 2});
  EXPECT_THAT(run(ops::clip_by_norm(root_, x, 1, {1})), ElementsAre(0, 0, FloatEq(0.6f), FloatEq(0.8f)));
}

TEST_F(ClipTest, TheLimitMayBeATensor) {
  const Output limit = ops::placeholder(root_, kFloat, {}, "limit"), x = floats({3, 4});
  const Feeds feeds = {{limit, Tensor::scalar(1.f)}};
  EXPECT_THAT(run(ops::clip_by_norm(root_, x, limit), feeds), near({0.6f, 0.8f}));
  EXPECT_THAT(run(ops::clip_by_global_norm(root_, std::vector{x}, limit).first[0], feeds), near({0.6f, 0.8f}));
}

// The sum of the squares is more than a half can hold.
TEST_F(ClipTest, HalvesAreSummedUpInFloat) {
  const Output x = ops::cast(root_, floats({300, 400}), kHalf);
  const Output by_axis = ops::clip_by_norm(root_, x, 250, {0});
  EXPECT_EQ(by_axis.dtype(), kHalf);
  EXPECT_THAT(run(by_axis), ElementsAre(150, 200));
  const auto [clipped, norm] = ops::clip_by_global_norm(root_, std::vector{x, floats({1200})}, 130);
  EXPECT_THAT(run(norm), ElementsAre(1300));
  EXPECT_EQ(clipped[0].dtype(), kHalf);
  EXPECT_THAT(run(clipped[0]), ElementsAre(30, 40));
}

TEST_F(ClipTest, GradientsPassThrough) {
  const Output x = ops::placeholder(root_, kDouble, {2}, "x");
  const auto gradient_at = [&](const Output& y, std::vector<double> at) {
    return run(ops::gradients(root_, {y}, {x}, {ops::constant(root_, Tensor::of<double>({1, 10}))})[0],
               {{x, Tensor::of(at)}});
  };
  EXPECT_THAT(gradient_at(ops::clip_by_value(root_, x, -1, 1), {1, 1.5}), ElementsAre(1, 0));
  const Output by_norm = ops::clip_by_norm(root_, x, 1);
  EXPECT_THAT(gradient_at(by_norm, {0.3, 0.4}), ElementsAre(1, 10));
  EXPECT_THAT(gradient_at(by_norm, {0, 0}), ElementsAre(1, 10));
  // (I - u u^T) g / |x| with the direction u = (0.6, 0.8) and |x| = 5.
  EXPECT_THAT(gradient_at(by_norm, {3, 4}), near({(1 - 8.6f * 0.6f) / 5, (10 - 8.6f * 0.8f) / 5}));
  EXPECT_FALSE(has_tape());
}

}  // namespace
}  // namespace longhaul
