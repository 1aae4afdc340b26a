#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "longhaul/base/error.h"
#include "longhaul/events/summary.h"
#include "longhaul/media/image.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kNan = NAN, kInf = INFINITY;

// The bytes of the only image.
template <typename T>
std::vector<int> shown(Shape shape, const std::vector<T>& values, std::vector<uint8_t> bad_color = {255, 0, 0, 255}) {
  const auto summary = image_summary("t", Tensor::of<T>(std::move(shape), values), 1, bad_color);
  const Tensor pixels = decode_png(summary.value(0).image().encoded_image_string());
  return {pixels.flat<uint8_t>().begin(), pixels.flat<uint8_t>().end()};
}
std::vector<int> shown_grey(const std::vector<float>& values) {
  return shown<float>({1, 1, static_cast<int64_t>(values.size()), 1}, values);
}

std::string image_refusal(const Tensor& images, int64_t max_outputs = 3,
                          std::vector<uint8_t> bad_color = {1, 2, 3, 4}) {
  return refusal_of([&] { image_summary("the/tag", images, max_outputs, bad_color); });
}

Tensor zeros(Shape shape) {
  const auto count = static_cast<size_t>(shape.num_elements());
  return Tensor::of<float>(std::move(shape), std::vector<float>(count));
}

TEST(ImageSummary, BytesAreShownAsTheyAre) {
  EXPECT_THAT(shown<uint8_t>({1, 1, 2, 3}, {0, 1, 2, 3, 4, 200}), ElementsAre(0, 1, 2, 3, 4, 200));
}

TEST(ImageSummary, SaysHowLargeTheImageIs) {
  const auto image = image_summary("t", zeros({1, 2, 5, 4})).value(0).image();
  EXPECT_EQ(image.height(), 2);
  EXPECT_EQ(image.width(), 5);
  EXPECT_EQ(image.colorspace(), 4);
}

TEST(ImageSummary, TheFirstOnesOfABatchAreShown) {
  const Tensor batch = Tensor::of<uint8_t>(Shape{4, 1, 1, 1}, {10, 20, 30, 40});
  const auto summary = image_summary("t", batch);
  ASSERT_EQ(summary.value_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(summary.value(i).tag(), "t/image/" + std::to_string(i));
    EXPECT_EQ(decode_png(summary.value(i).image().encoded_image_string()).item<int>(), 10 * (i + 1));
  }
  EXPECT_EQ(image_summary("t", batch, 10).value_size(), 4);
  EXPECT_EQ(image_summary("t", batch, 1).value(0).tag(), "t/image");
  EXPECT_EQ(image_summary("t", zeros({0, 2, 2, 1})).value_size(), 0);
}

TEST(ImageSummary, TheLargestPositiveValueBecomes255) {
  EXPECT_THAT(shown_grey({0, 1, 2, 4}), ElementsAre(0, 63, 127, 255));
  EXPECT_THAT(shown_grey({0, 1e30f}), ElementsAre(0, 254)) << "255 but for a rounding, and fractions are cut off";
}

TEST(ImageSummary, WithNegativeValuesZeroIsInTheMiddle) {
  EXPECT_THAT(shown_grey({-1, 0, 1, 0.5f}), ElementsAre(1, 128, 255, 191));
  EXPECT_THAT(shown_grey({-4, 0, 1}), ElementsAre(1, 128, 159));
}

TEST(ImageSummary, EachImageHasAScaleOfItsOwn) {
  const auto summary = image_summary("t", Tensor::of<float>(Shape{2, 1, 1, 1}, {1, 100}));
  for (const auto& value : summary.value()) {
    EXPECT_EQ(decode_png(value.image().encoded_image_string()).item<int>(), 255);
  }
}

TEST(ImageSummary, WhatIsNearlyNothingIsBlack) {
  EXPECT_THAT(shown_grey({0, 1e-7f, 0}), ElementsAre(0, 0, 0));
  EXPECT_THAT(shown_grey({-1e-7f, 0}), ElementsAre(128, 128));
}

TEST(ImageSummary, PixelsThatAreNotFiniteHaveTheBadColour) {
  EXPECT_THAT(shown<float>({1, 1, 3, 3}, {kNan, 0, 0, 1, 2, 0, 0, 0, kInf}),
              ElementsAre(255, 0, 0, 127, 255, 0, 255, 0, 0));
  EXPECT_THAT(shown<float>({1, 1, 2, 4}, {-kInf, 0, 0, 0, 1, 1, 1, 1}, {1, 2, 3, 4}),
              ElementsAre(1, 2, 3, 4, 255, 255, 255, 255));
  EXPECT_THAT(shown_grey({kNan, 1}), ElementsAre(255, 255));
  EXPECT_THAT(shown_grey({kNan, kInf}), ElementsAre(255, 255));
}

TEST(ImageSummary, HalvesAndDoublesAreShownAsFloatsAre) {
  EXPECT_THAT(shown<double>({1, 1, 3, 1}, {0, 0.5, 1}), ElementsAre(0, 127, 255));
  EXPECT_THAT(shown<Half>({1, 1, 3, 1}, {Half(0), Half(0.5f), Half(1)}), ElementsAre(0, 127, 255));
}

TEST(ImageSummary, WhatIsNoImageIsRefusedByItsTag) {
  EXPECT_THAT(image_refusal(zeros({2, 3, 1})),
              HasSubstr("summary the/tag: images: Tensor must be 4-D with last dim 1, 3, or 4, not [2,3,1]"));
  EXPECT_THAT(image_refusal(zeros({1, 2, 3, 2})), HasSubstr("not [1,2,3,2]"));
  EXPECT_THAT(image_refusal(zeros({1, 2, 3, 5})), HasSubstr("not [1,2,3,5]"));
  EXPECT_THAT(image_refusal(zeros({1, 0, 3, 1})), HasSubstr("the images have no pixels: [1,0,3,1]"));
  EXPECT_THAT(image_refusal(Tensor::of<int32_t>(Shape{1, 1, 1, 1}, {1})), HasSubstr("not int32"));
  EXPECT_THAT(image_refusal(zeros({1, 1, 1, 1}), 0), HasSubstr("max_outputs must be at least 1, not 0"));
  EXPECT_THAT(image_refusal(zeros({1, 1, 1, 4}), 3, {1, 2, 3}),
              HasSubstr("bad_color has 3 values for images with 4 channels"));
}

}  // namespace
}  // namespace longhaul
