#include "longhaul/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace longhaul {
namespace {

TEST(DType, HasTensorFlowsNumbersAndNames) {
  EXPECT_EQ(static_cast<int>(kHalf), 19);
  EXPECT_EQ(static_cast<int>(kString), 7);
  EXPECT_EQ(static_cast<int>(kBFloat16), 14);
  EXPECT_EQ(dtype_size(kComplex128), 16u);
  EXPECT_EQ(find_dtype("uint32"), kUInt32);
  EXPECT_EQ(find_dtype("float33"), std::nullopt);
  EXPECT_FALSE(is_known_dtype(101));
}

// Pairs from the tables of IEEE 754 binary16: 0x3c00 is 1, 0x7bff is 65504, 0x0001 is 2^-24, 0x0400 is 2^-14.
TEST(Half, ConvertsAsIeee754Says) {
  EXPECT_EQ(Half(1.0f).bits, 0x3c00);
  EXPECT_EQ(Half(-2.0f).bits, 0xc000);
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(5.9604644775390625e-08f).bits, 0x0001);
  EXPECT_EQ(Half(6.103515625e-05f).bits, 0x0400);
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    ASSERT_EQ(Half(static_cast<float>(half)).bits, bits);
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(1.00390625f).bits, 0x3f80);  // half way: to even
  EXPECT_EQ(BFloat16(1.01171875f).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Shape, KnowsWhatIsUnknown) {
  EXPECT_EQ(Shape({2, 3}).num_elements(), 6);
  EXPECT_EQ(Shape({-1, 3}).num_elements(), -1);
  EXPECT_EQ(Shape({int64_t{1} << 40, int64_t{1} << 40}).num_elements(), -1);
  EXPECT_EQ(Shape({int64_t{1} << 40, int64_t{1} << 40, 0}).num_elements(), 0);
  EXPECT_EQ(Shape({-1, 3}).to_string(), "[?,3]");
  EXPECT_TRUE(Shape({-1, 3}).compatible_with({2, 3}));
  EXPECT_FALSE(Shape({-1, 3}).compatible_with({2, 4}));
  EXPECT_TRUE(Shape::unknown_rank().compatible_with({2, 4}));
}

TEST(Tensor, CopiesShareTheBytes) {
  Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  Tensor b = a;
  a.mutable_flat<float>()[3] = 9;
  EXPECT_EQ(b.flat<float>()[3], 9);
  EXPECT_EQ(b.reshaped({4}).flat<float>()[3], 9);
  EXPECT_THROW(b.reshaped({5}), InvalidArgumentError);
}

TEST(Tensor, HoldsStrings) {
  Tensor names = Tensor::of<std::string>({"a", "bc"});
  EXPECT_EQ(names.flat<std::string>()[1], "bc");
  EXPECT_EQ(Tensor::scalar("one").item<std::string>(), "one");
  EXPECT_EQ(names.to_string(), "string[2] {\"a\", \"bc\"}");
}

TEST(Tensor, AnItemIsConverted) {
  EXPECT_EQ(Tensor::scalar<int32_t>(7).item<int64_t>(), 7);
  EXPECT_EQ(Tensor::of<int64_t>({5}).item<float>(), 5.0f);
  EXPECT_EQ(Tensor::scalar(Half(1.5f)).item<double>(), 1.5);
  EXPECT_THROW(Tensor::of<int64_t>({5, 6}).item<int>(), InvalidArgumentError);
  EXPECT_THROW(Tensor::scalar("x").item<int>(), InvalidArgumentError);
}

TEST(Tensor, RefusesWhatItCannotBe) {
  EXPECT_THROW(Tensor(kFloat, {-1}), InvalidArgumentError);
  EXPECT_THROW(Tensor(kDouble, Shape({int64_t{1} << 61})), InvalidArgumentError);
  EXPECT_THROW(Tensor(kFloat, Shape({int64_t{1} << 50})), ResourceExhaustedError);
  EXPECT_THROW(Tensor::of<float>({3}, {1, 2}), InvalidArgumentError);
  EXPECT_THROW(Tensor::of<float>({1, 2}).flat<double>(), InvalidArgumentError);
}

TEST(Tensor, IdenticalComparesDtypeShapeAndBytes) {
  EXPECT_TRUE(identical(Tensor::of<float>({1, 2}), Tensor::of<float>({1, 2})));
  EXPECT_FALSE(identical(Tensor::of<float>({1, 2}), Tensor::of<float>({1, 3})));
  EXPECT_FALSE(identical(Tensor::of<float>({1, 2}), Tensor::of<float>({1, 2}).reshaped({1, 2})));
  EXPECT_TRUE(identical(Tensor::scalar("x"), Tensor::scalar("x")));
}

}  // namespace
}  // namespace longhaul
