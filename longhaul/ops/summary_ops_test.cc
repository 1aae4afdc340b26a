#include "longhaul/ops/summary_ops.h"

#include <gmock/gmock.h>

#include <cmath>

#include "longhaul/base/log.h"
#include "longhaul/media/image.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/scripted_session.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SummaryOps : public ::testing::Test {
 protected:
  proto::Summary run(const Output& summary) {
    testing::ScriptedSession session(graph_);
    proto::Summary parsed;
    EXPECT_TRUE(parsed.ParseFromString(session.run(summary).item<std::string>()));
    return parsed;
  }
  std::vector<std::string> tags(const Output& summary) {
    const proto::Summary parsed = run(summary);
    std::vector<std::string> tags;
    for (const auto& value : parsed.value()) tags.push_back(value.tag());
    return tags;
  }
  template <typename T>
  Output constant(Shape shape, const std::vector<T>& values) {
    return ops::constant(root_, Tensor::of<T>(std::move(shape), values));
  }
  Output zeros(Shape shape) { return constant(shape, std::vector<float>(static_cast<size_t>(shape.num_elements()))); }
  std::string error_of_run(const Output& summary) {
    return refusal_of([&] { run(summary); });
  }

  Graph graph_;
  const Scope root_{graph_};
  const Scope outer_ = root_.sub("outer");
};

TEST_F(SummaryOps, AScalarsTagIsItsNameWithScopes) {  // SU-1, SU-5
  const Output summary = summary::scalar(outer_, "inner", ops::constant(root_, int32_t{3}));
  EXPECT_EQ(summary.op().name(), "outer/inner");
  const auto parsed = run(summary);
  EXPECT_EQ(parsed.value(0).tag(), "outer/inner");
  EXPECT_EQ(parsed.value(0).simple_value(), 3.0f);
}

TEST_F(SummaryOps, AFamilyIsInTheNameAndBeforeTheTag) {  // SU-1
  const Output one = ops::constant(root_, int32_t{3});
  const Output first = summary::scalar(outer_, "inner", one, {.family = "family"});
  const Output second = summary::scalar(outer_, "inner", one, {.family = "family"});
  EXPECT_EQ(first.op().name(), "outer/family/inner");
  EXPECT_THAT(tags(first), ElementsAre("family/outer/family/inner"));
  EXPECT_THAT(tags(second), ElementsAre("family/outer/family/inner_1"));
  EXPECT_THAT(tags(summary::histogram(outer_, "h", one, {.family = "family"})), ElementsAre("family/outer/family/h"));
  EXPECT_THAT(tags(summary::image(outer_, "i", zeros({1, 2, 3, 1}), 1, {.family = "family"})),
              ElementsAre("family/outer/family/i/image"));
  EXPECT_THAT(tags(summary::audio(outer_, "a", zeros({1, 5}), 8000, 1, {.family = "family"})),
              ElementsAre("family/outer/family/a/audio"));
  const Output text = ops::constant(root_, Tensor::scalar("text"));
  EXPECT_THAT(tags(summary::text(outer_, "t", text, {.family = "family"})), ElementsAre("family/outer/family/t"));
}

TEST_F(SummaryOps, AHistogramIsUnderItsName) {  // SU-1
  const auto parsed = run(summary::histogram(outer_, "inner", constant<float>({2, 2}, {1, 2, 3, 4})));
  EXPECT_EQ(parsed.value(0).tag(), "outer/inner");
  EXPECT_EQ(parsed.value(0).histo().num(), 4);
}

TEST_F(SummaryOps, ImagesAreNumberedUnlessOneIsAskedFor) {  // SU-1
  const Output images = zeros({5, 2, 3, 1});
  EXPECT_THAT(tags(summary::image(outer_, "inner", images)),
              ElementsAre("outer/inner/image/0", "outer/inner/image/1", "outer/inner/image/2"));
  EXPECT_THAT(tags(summary::image(outer_, "one", images, 1)), ElementsAre("outer/one/image"));
}

TEST_F(SummaryOps, AnImageIsPng) {
  const Output pixels = constant<uint8_t>({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const auto parsed = run(summary::image(root_, "i", pixels));
  const auto& image = parsed.value(0).image();
  EXPECT_TRUE(identical(decode_png(image.encoded_image_string()), Tensor::of<uint8_t>({1, 2, 3}, {1, 2, 3, 4, 5, 6})));
  EXPECT_EQ(image.height(), 1);
  EXPECT_EQ(image.width(), 2);
  EXPECT_EQ(image.colorspace(), 3);
}

TEST_F(SummaryOps, AnImportedImageMayHaveAColourForBadPixels) {
  const Output pixels = constant<float>({1, 1, 2, 3}, {NAN, 0, 0, 1, 1, 1});
  const Output summary = root_
                             .add("ImageSummary", "i", {ops::constant(root_, Tensor::scalar("i")), pixels},
                                  {{"max_images", int64_t{1}}, {"bad_color", Tensor::of<uint8_t>({7, 8, 9})}})
                             .output();
  EXPECT_TRUE(identical(decode_png(run(summary).value(0).image().encoded_image_string()),
                        Tensor::of<uint8_t>({1, 2, 3}, {7, 8, 9, 255, 255, 255})));
}

TEST_F(SummaryOps, SoundsAreNumberedUnlessOneIsAskedFor) {  // SU-1
  const Output rate = ops::constant(root_, 44100.0f);
  EXPECT_THAT(tags(summary::audio(outer_, "inner", zeros({5, 3, 2}), rate)),
              ElementsAre("outer/inner/audio/0", "outer/inner/audio/1", "outer/inner/audio/2"));
  const auto parsed = run(summary::audio(outer_, "one", zeros({1, 3}), 22050.0f, 1));
  EXPECT_EQ(parsed.value(0).tag(), "outer/one/audio");
  EXPECT_EQ(parsed.value(0).audio().sample_rate(), 22050.0f);
}

TEST_F(SummaryOps, ATextNamesItsPlugin) {
  const auto parsed = run(summary::text(root_, "t", constant<std::string>({2}, {"*a*", "b"})));
  EXPECT_EQ(parsed.value(0).metadata().plugin_data().plugin_name(), "text");
  EXPECT_THAT(parsed.value(0).tensor().string_val(), ElementsAre("*a*", "b"));
}

TEST_F(SummaryOps, ATensorHasTheMetadataThatItIsGiven) {
  proto::SummaryMetadata metadata;
  metadata.set_display_name("shown");
  const auto parsed = run(summary::tensor(root_, "t", constant<float>({2}, {1, 2}), metadata));
  EXPECT_EQ(parsed.value(0).metadata().display_name(), "shown");
  EXPECT_EQ(parsed.value(0).tensor().tensor_content().size(), 8u);
}

TEST_F(SummaryOps, NamesAreCleanedAndThatIsLogged) {  // SU-2
  std::vector<std::string> logged;
  LogSink before = set_log_sink([&](LogLevel, const std::string& message) { logged.push_back(message); });
  const Output one = ops::constant(root_, 1.0f);
  EXPECT_THAT(tags(summary::scalar(root_, "/a b:0", one)), ElementsAre("a_b_0"));
  EXPECT_THAT(logged, Contains(HasSubstr("\"/a b:0\" is not a valid summary name; using \"a_b_0\"")));
  logged.clear();
  EXPECT_THAT(tags(summary::scalar(root_, "layer_1/w.x-y", one, {.family = "a b"})),
              ElementsAre("a_b/a_b/layer_1/w.x-y"));
  EXPECT_THAT(logged, ElementsAre(HasSubstr("\"a b\"")));
  set_log_sink(before);
}

TEST_F(SummaryOps, MergedSummariesHaveOneTagOnce) {  // SU-3
  const Output a = summary::scalar(root_, "a", ops::constant(root_, 1.0f));
  const Output b = summary::scalar(root_, "b", ops::constant(root_, 2.0f));
  EXPECT_THAT(tags(summary::merge(root_, {a, b})), ElementsAre("a", "b"));
  EXPECT_THAT(error_of_run(summary::merge(root_, {a, b, a}, "twice")),
              AllOf(HasSubstr("twice: "), HasSubstr("Duplicate tag a")));
}

TEST_F(SummaryOps, AHistogramRefusesWhatIsNotFinite) {  // SU-3
  const auto histogram_of = [&](float value) { return summary::histogram(root_, "h", ops::constant(root_, value)); };
  EXPECT_THAT(error_of_run(histogram_of(NAN)), HasSubstr("Nan in summary histogram for: h"));
  EXPECT_THAT(error_of_run(histogram_of(INFINITY)), HasSubstr("Infinity in summary histogram for: h_1"));
  EXPECT_TRUE(std::isnan(run(summary::scalar(root_, "s", ops::constant(root_, NAN))).value(0).simple_value()));
}

TEST_F(SummaryOps, AllSummariesOfACollectionAreMerged) {
  const Output one = ops::constant(root_, 1.0f);
  EXPECT_FALSE(summary::merge_all(root_));
  summary::scalar(root_, "a", one);
  summary::scalar(root_, "b", one, {.collections = {"mine"}});
  summary::scalar(root_, "c", one, {.collections = {}});
  const Output merged = *summary::merge_all(root_);
  EXPECT_EQ(merged.op().name(), "Merge/MergeSummary");
  EXPECT_THAT(tags(merged), ElementsAre("a"));
  EXPECT_THAT(tags(*summary::merge_all(root_, "mine")), ElementsAre("b"));
}

TEST_F(SummaryOps, WhatCannotBeShownIsRefusedWhereItIsSeen) {
  const auto refused = [&](auto call) { return refusal_of([&] { call(); }); };
  const Output text = ops::constant(root_, Tensor::scalar("text")), one = ops::constant(root_, 1.0f);
  EXPECT_THAT(refused([&] { summary::scalar(root_, "s", text); }), HasSubstr("s (ScalarSummary): the values must be"));
  EXPECT_THAT(refused([&] { summary::histogram(root_, "h", text); }), HasSubstr("not string"));
  EXPECT_THAT(refused([&] { summary::image(root_, "i", zeros({2, 3, 1})); }),
              HasSubstr("Tensor must be 4-D with last dim 1, 3, or 4, not [2,3,1]"));
  EXPECT_THAT(refused([&] { summary::image(root_, "i2", zeros({1, 2, 3, 2})); }), HasSubstr("1, 3, or 4"));
  EXPECT_THAT(refused([&] { summary::image(root_, "i3", constant<int32_t>({1, 1, 1, 1}, {1})); }), HasSubstr("int32"));
  EXPECT_THAT(refused([&] { summary::image(root_, "i4", zeros({1, 1, 1, 1}), 0); }), HasSubstr("max_images"));
  EXPECT_THAT(refused([&] {
                root_.add("ImageSummary", "i5", {text, zeros({1, 1, 1, 1})}, {{"bad_color", Tensor::scalar(1.0f)}});
              }),
              HasSubstr("bad_color must be a vector of uint8, not float[]"));
  EXPECT_THAT(refused([&] { summary::audio(root_, "a", zeros({3}), 8000); }), HasSubstr("3-D or 2-D, not [3]"));
  EXPECT_THAT(refused([&] { summary::audio(root_, "a2", constant<double>({1, 1}, {1}), one); }), HasSubstr("double"));
  EXPECT_THAT(refused([&] { summary::text(root_, "t", one); }), HasSubstr("dtype string, got float"));
}

TEST_F(SummaryOps, WhatIsOnlySeenWhenItRunsNamesTheTag) {
  EXPECT_THAT(error_of_run(summary::audio(root_, "a", zeros({1, 1}), 0.0f)),
              HasSubstr("summary a: sample_rate must be > 0"));
  EXPECT_THAT(error_of_run(summary::image(root_, "i", zeros({1, 0, 5, 1}))),
              HasSubstr("summary i: the images have no pixels"));
  const Output name = ops::constant(root_, Tensor::scalar("t")), bad = ops::constant(root_, Tensor::scalar("\x0a\xff"));
  EXPECT_THAT(error_of_run(root_.add("TensorSummaryV2", "t", {name, name, bad}).output()),
              HasSubstr("summary t: its metadata is not a SummaryMetadata"));
  EXPECT_THAT(error_of_run(summary::scalar(root_, "s", zeros({2}))),
              HasSubstr("summary s: a scalar must be one number"));
}

}  // namespace
}  // namespace longhaul
