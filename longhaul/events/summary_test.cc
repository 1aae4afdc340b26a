#include "longhaul/events/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

template <typename Call>
std::string invalid_argument(Call call) {
  try {
    call();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

proto::Summary described(const std::string& tag) {
  auto summary = scalar_summary(tag, 1.0f);
  summary.mutable_value(0)->mutable_metadata()->set_display_name("name");
  return summary;
}

TEST(Summary, AScalarOfAnyTypeBecomesAFloat) {  // SU-5
  EXPECT_EQ(scalar_summary("t", Tensor::scalar(2.5)).value(0).simple_value(), 2.5f);
  EXPECT_EQ(scalar_summary("t", Tensor::scalar<int64_t>(-3)).value(0).simple_value(), -3.0f);
  EXPECT_EQ(scalar_summary("t", Tensor::scalar(true)).value(0).simple_value(), 1.0f);
  EXPECT_EQ(scalar_summary("a/b", 1.0f).value(0).tag(), "a/b");
  EXPECT_TRUE(std::isnan(scalar_summary("t", Tensor::scalar(NAN)).value(0).simple_value()));
  EXPECT_THROW(scalar_summary("t", Tensor::of<float>({1, 2})), InvalidArgumentError);
  EXPECT_THROW(scalar_summary("t", Tensor::scalar("text")), InvalidArgumentError);
}

TEST(Summary, AHistogramTakesEveryRealType) {
  EXPECT_EQ(histogram_summary("t", Tensor::of<float>({1, 2})).value(0).histo().num(), 2);
  EXPECT_EQ(histogram_summary("t", Tensor::of<double>({1, 2})).value(0).histo().max(), 2);
  EXPECT_EQ(histogram_summary("t", Tensor::of<int32_t>({1, -2})).value(0).histo().min(), -2);
  EXPECT_EQ(histogram_summary("t", Tensor::of<bool>({true, false})).value(0).histo().sum(), 1);
  EXPECT_EQ(histogram_summary("t", Tensor::of<Half>({Half(1.5f)})).value(0).histo().sum(), 1.5);
  EXPECT_EQ(histogram_summary("t", Tensor(kFloat, Shape{0})).value(0).histo().num(), 0);
}

TEST(Summary, AHistogramOfNoNumbersIsRefused) {
  EXPECT_THAT(invalid_argument([] { histogram_summary("t", Tensor::scalar("text")); }), HasSubstr("string"));
  EXPECT_EQ(invalid_argument([] { histogram_summary("h", Tensor::scalar(NAN)); }), "Nan in summary histogram for: h");
}

TEST(Summary, WhatIsNoNumberIsRefusedByItsTag) {
  EXPECT_THAT(invalid_argument([] { scalar_summary("s", Tensor::of<float>({1, 2})); }),
              HasSubstr("summary s: a scalar must be one number, not float[2]"));
  EXPECT_THAT(invalid_argument([] { scalar_summary("s", Tensor::scalar("text")); }), HasSubstr("not string[]"));
  EXPECT_THAT(invalid_argument([] { histogram_summary("h", Tensor::scalar("text")); }), HasSubstr("summary h: "));
  EXPECT_THAT(invalid_argument([] { text_summary("t", Tensor::scalar(1.0f)); }),
              HasSubstr("summary t: a text summary needs strings, not float"));
}

TEST(Summary, ATextIsATensorOfStringsForItsPlugin) {
  const auto value = text_summary("t", Tensor::of<std::string>(Shape{1, 2}, {"a", "*b*"})).value(0);
  EXPECT_EQ(value.tensor().dtype(), proto::DT_STRING);
  EXPECT_EQ(value.tensor().tensor_shape().dim_size(), 2);
  EXPECT_EQ(value.tensor().tensor_shape().dim(1).size(), 2);
  EXPECT_EQ(value.tensor().string_val(1), "*b*");
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(text_summary("t", "one").value(0).tensor().tensor_shape().dim_size(), 0);
}

TEST(Summary, MergingKeepsAllValues) {
  std::vector<proto::Summary> summaries = {scalar_summary("a", 1.0f), scalar_summary("b", 2.0f), {}};
  auto merged = merge_summaries(summaries);
  ASSERT_EQ(merged.value_size(), 2);
  EXPECT_EQ(merged.value(1).tag(), "b");

  std::vector<std::string> serialized;
  for (const auto& summary : summaries) serialized.push_back(summary.SerializeAsString());
  EXPECT_EQ(merge_summaries(serialized), merged.SerializeAsString());
}

TEST(Summary, ATagMayBeThereOnce) {  // SU-3
  std::vector<proto::Summary> summaries = {scalar_summary("a", 1.0f), scalar_summary("a", 2.0f)};
  EXPECT_THAT(invalid_argument([&] { merge_summaries(summaries); }), HasSubstr("Duplicate tag a"));
}

TEST(Summary, ValuesWithoutATagAreNoDuplicates) {
  std::vector<proto::Summary> summaries = {scalar_summary("", 1.0f), scalar_summary("a", 3.0f),
                                           scalar_summary("", 2.0f)};
  EXPECT_EQ(merge_summaries(summaries).value_size(), 3);
  std::vector<std::string> serialized;
  for (const auto& summary : summaries) serialized.push_back(summary.SerializeAsString());
  EXPECT_EQ(parse_summary(merge_summaries(serialized)).value_size(), 3);
  serialized.push_back(scalar_summary("a", 4.0f).SerializeAsString());
  EXPECT_THAT(invalid_argument([&] { merge_summaries(serialized); }), HasSubstr("Duplicate tag a"));
}

TEST(Summary, MetadataIsSeenWithoutParsing) {
  EXPECT_TRUE(has_metadata(described("t")));
  EXPECT_TRUE(has_metadata(described("t").SerializeAsString()));
  EXPECT_FALSE(has_metadata(scalar_summary("t", 1.0f)));
  EXPECT_FALSE(has_metadata(scalar_summary("t", 1.0f).SerializeAsString()));
  EXPECT_FALSE(has_metadata(std::string_view()));
}

TEST(Summary, BytesThatAreNoSummaryAreRefused) {
  const std::string bytes = described("some tag").SerializeAsString();
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_THROW(has_metadata(bytes.substr(0, size)), InvalidArgumentError) << size;
    EXPECT_THROW(parse_summary(bytes.substr(0, size)), InvalidArgumentError) << size;
  }
}

}  // namespace
}  // namespace longhaul
