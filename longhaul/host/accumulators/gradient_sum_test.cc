#include "longhaul/host/accumulators/gradient_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<T> values_in(const Tensor& tensor) {
  return {tensor.flat<T>().begin(), tensor.flat<T>().end()};
}

void add_to(GradientSum& sum, const Tensor& gradient) {
  const std::vector<Tensor> tensors{gradient};
  sum.add(tensors);
}

void add_to(GradientSum& sum, const Tensor& indices, const Tensor& values, const Tensor& shape = Tensor(kInt64, {0})) {
  const std::vector<Tensor> tensors{indices, values, shape};
  sum.add(tensors);
}

TEST(DenseSum, OneGradientIsGivenAsItCame) {
  const auto sum = make_dense_sum({});
  const Tensor gradient = Tensor::of<float>({1, 2});
  add_to(*sum, gradient);
  EXPECT_EQ(sum->take()[0].data(), gradient.data());
}

TEST(DenseSum, SeveralAreAddedInMemoryOfItsOwn) {
  const auto sum = make_dense_sum({});
  const Tensor first = Tensor::of<float>({1, 2}), second = Tensor::of<float>({3, 6});
  add_to(*sum, first);
  add_to(*sum, second);
  EXPECT_THAT(values_in<float>(sum->take()[0]), ElementsAre(2, 4));
  EXPECT_THAT(values_in<float>(first), ElementsAre(1, 2));
  EXPECT_THAT(values_in<float>(second), ElementsAre(3, 6));
}

TEST(DenseSum, WhatWasTakenIsNotAddedTo) {
  const auto sum = make_dense_sum({});
  for (const float value : {1.f, 3.f}) add_to(*sum, Tensor::scalar(value));
  const Tensor taken = sum->take()[0];
  for (const float value : {5.f, 7.f}) add_to(*sum, Tensor::scalar(value));
  EXPECT_EQ(taken.item<float>(), 2);
  EXPECT_EQ(sum->take()[0].item<float>(), 6);
}

TEST(DenseSum, TheSumIsNotDivided) {
  const auto sum = make_dense_sum({.dtype = kDouble, .shape = {}, .reduction = GradientReduction::kSum});
  for (const double value : {10., 20., 0.5}) add_to(*sum, Tensor::scalar(value));
  EXPECT_EQ(sum->take()[0].item<double>(), 30.5);
}

TEST(DenseSum, SixteenBitGradientsAreRoundedOnce) {
  const auto halves = make_dense_sum({.dtype = kHalf});
  for (int i = 0; i < 3; ++i) add_to(*halves, Tensor::scalar(Half(40000.f)));  // their sum is above the largest half
  EXPECT_EQ(halves->take()[0].item<Half>(), Half(40000.f));
  const auto brains = make_dense_sum({.dtype = kBFloat16});
  add_to(*brains, Tensor::scalar(BFloat16(256.f)));
  for (int i = 0; i < 3; ++i) add_to(*brains, Tensor::scalar(BFloat16(1.f)));  // 256 + 1 is 256 as a bfloat16
  EXPECT_EQ(brains->take()[0].item<BFloat16>(), BFloat16(259.f / 4));
}

TEST(DenseSum, TheFirstGradientDecidesTheShape) {
  const auto sum = make_dense_sum({});
  add_to(*sum, Tensor::of<float>(Shape{2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(refusal_of([&] { add_to(*sum, Tensor::of<float>({1, 2})); }), "Shape mismatch: expected [2,2], got [2]");
  add_to(*sum, Tensor::of<float>(Shape{2, 2}, {3, 2, 1, 0}));
  EXPECT_EQ(refusal_of([&] { add_to(*sum, Tensor::scalar(1.f)); }), "Shape mismatch: expected [2,2], got []");
  EXPECT_THAT(values_in<float>(sum->take()[0]), ElementsAre(2, 2, 2, 2));
  add_to(*sum, Tensor::scalar(1.f));  // of the next step, this is the first
  EXPECT_EQ(sum->take()[0].item<float>(), 1);
}

TEST(DenseSum, NaNIsKept) {
  const auto sum = make_dense_sum({});
  add_to(*sum, Tensor::scalar(std::numeric_limits<float>::quiet_NaN()));
  add_to(*sum, Tensor::scalar(1.f));
  EXPECT_TRUE(std::isnan(sum->take()[0].item<float>()));
}

class RowSumTest : public ::testing::Test {
 protected:
  static GradientSpec table(GradientReduction reduction = GradientReduction::kMean) {
    return {.dtype = kFloat, .shape = {3, 2}, .reduction = reduction};
  }
  static void add_two(GradientSum& sum) {
    add_to(sum, Tensor::of<int64_t>({0, 1}), Tensor::of<float>(Shape{2, 2}, {1, 0, 0, 2}));
    add_to(sum, Tensor::of<int64_t>({0, 2}), Tensor::of<float>(Shape{2, 2}, {0, 1, 3, 0}), Tensor::of<int64_t>({3, 2}));
  }

  const std::unique_ptr<GradientSum> sum_ = make_row_sum(table());
};

TEST_F(RowSumTest, TheMeanOfARowIsOverTheGradientsThatHaveIt) {
  add_two(*sum_);
  const std::vector<Tensor> taken = sum_->take();
  EXPECT_THAT(values_in<int64_t>(taken[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(values_in<float>(taken[1]), ElementsAre(0.5, 0.5, 0, 2, 3, 0));
  EXPECT_EQ(taken[1].shape(), (Shape{3, 2}));
  EXPECT_THAT(values_in<int64_t>(taken[2]), ElementsAre(-1, 2));
}

TEST_F(RowSumTest, TheSumOfARow) {
  const auto sum = make_row_sum(table(GradientReduction::kSum));
  add_two(*sum);
  EXPECT_THAT(values_in<float>(sum->take()[1]), ElementsAre(1, 1, 0, 2, 3, 0));
}

TEST_F(RowSumTest, RowsThatComeTwiceInAGradientAreAdded) {
  add_to(*sum_, Tensor::of<int64_t>({2, 0, 2}), Tensor::of<float>(Shape{3, 2}, {1, 2, 3, 4, 5, 6}));
  add_to(*sum_, Tensor::of<int64_t>({2}), Tensor::of<float>(Shape{1, 2}, {2, 2}));
  const std::vector<Tensor> taken = sum_->take();
  EXPECT_THAT(values_in<int64_t>(taken[0]), ElementsAre(0, 2));
  EXPECT_THAT(values_in<float>(taken[1]), ElementsAre(3, 4, 4, 5));
}

TEST_F(RowSumTest, BeginsAnewAfterATake) {
  add_two(*sum_);
  sum_->take();
  add_to(*sum_, Tensor::of<int64_t>({1}), Tensor::of<float>(Shape{1, 2}, {7, 8}));
  const std::vector<Tensor> taken = sum_->take();
  EXPECT_THAT(values_in<int64_t>(taken[0]), ElementsAre(1));
  EXPECT_THAT(values_in<float>(taken[1]), ElementsAre(7, 8));
}

TEST_F(RowSumTest, AGradientWithoutRowsIsOne) {
  add_to(*sum_, Tensor(kInt64, {0}), Tensor(kFloat, {0, 2}));
  const std::vector<Tensor> taken = sum_->take();
  EXPECT_EQ(taken[0].shape(), (Shape{0}));
  EXPECT_EQ(taken[1].shape(), (Shape{0, 2}));
}

TEST_F(RowSumTest, SaysWhatDoesNotFit) {
  const Tensor one = Tensor::of<int64_t>({0}), row = Tensor::of<float>(Shape{1, 2}, {1, 2});
  const auto refusal = [&](const Tensor& indices, const Tensor& values, const Tensor& shape = Tensor(kInt64, {0})) {
    return refusal_of([&] { add_to(*sum_, indices, values, shape); });
  };
  EXPECT_EQ(refusal(Tensor::scalar<int64_t>(0), row), "Input indices should be vector but received shape: []");
  EXPECT_EQ(refusal(one, Tensor::scalar(1.f)), "Values cannot be 0-dimensional.");
  EXPECT_THAT(refusal(Tensor::of<int64_t>({0, 1}), row), HasSubstr(" non-empty input values, got 1"));
  EXPECT_EQ(refusal(one, row, Tensor::of<int64_t>({3})), "Shape mismatch: expected shape rank at least 2, got 1");
  EXPECT_EQ(refusal(one, row, Tensor::of<int64_t>({3, 4})), "Shape mismatch: expected shape dim 1 to be 2, got 4");
  EXPECT_EQ(refusal(Tensor::of<int64_t>({3}), row),
            "Shape mismatch: index of slice 0 exceeded limits of shape; index is 3 exceeded 3");
  EXPECT_EQ(refusal(Tensor::of<int64_t>({-1}), row), "index of slice 0 is negative: -1");
  EXPECT_EQ(refusal(one, Tensor::of<float>({1})), "Shape mismatch: expected values rank at least 2, got 1");
  EXPECT_EQ(refusal(one, Tensor::of<float>(Shape{1, 3}, {1, 2, 3})),
            "Shape mismatch: expected values dim 1 to be 2, got 3");
  add_to(*sum_, one, Tensor::of<float>(Shape{1, 2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(refusal(one, row), "Shape mismatch: expected values rank 3, got 2");
  EXPECT_EQ(sum_->take()[0].num_elements(), 1);
}

}  // namespace
}  // namespace longhaul
