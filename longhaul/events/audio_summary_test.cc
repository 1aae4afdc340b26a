#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "longhaul/base/error.h"
#include "longhaul/events/summary.h"
#include "longhaul/media/wav.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

std::string audio_refusal(const Tensor& sounds, float sample_rate = 8000, int64_t max_outputs = 3) {
  return refusal_of([&] { audio_summary("the/tag", sounds, sample_rate, max_outputs); });
}

Tensor silence(Shape shape) {
  const auto count = static_cast<size_t>(shape.num_elements());
  return Tensor::of<float>(std::move(shape), std::vector<float>(count));
}

TEST(AudioSummary, ASoundIsAWavFile) {
  const auto summary = audio_summary("t", Tensor::of<float>(Shape{1, 2, 2}, {0, 0.5f, -0.5f, 1}), 22050, 1);
  const auto& audio = summary.value(0).audio();
  EXPECT_EQ(summary.value(0).tag(), "t/audio");
  EXPECT_EQ(audio.sample_rate(), 22050);
  EXPECT_EQ(audio.num_channels(), 2);
  EXPECT_EQ(audio.length_frames(), 2);
  EXPECT_EQ(audio.content_type(), "audio/wav");
  EXPECT_EQ(audio.encoded_audio_string(), encode_wav(std::vector<float>{0, 0.5f, -0.5f, 1}, 22050, 2));
}

TEST(AudioSummary, TheFirstOnesOfABatchAreThere) {
  const Tensor batch = Tensor::of<float>(Shape{4, 2}, {0.1f, 0.1f, 0.2f, 0.2f, 0.3f, 0.3f, 0.4f, 0.4f});
  const auto summary = audio_summary("t", batch, 8000.4f);
  ASSERT_EQ(summary.value_size(), 3);
  EXPECT_EQ(summary.value(2).tag(), "t/audio/2");
  EXPECT_EQ(summary.value(2).audio().num_channels(), 1);
  EXPECT_EQ(summary.value(2).audio().encoded_audio_string(), encode_wav(std::vector<float>{0.3f, 0.3f}, 8000, 1));
  EXPECT_EQ(audio_summary("t", batch, 8000, 9).value_size(), 4);
}

TEST(AudioSummary, WhatIsNoSoundIsRefusedByItsTag) {
  EXPECT_THAT(audio_refusal(silence({3})), HasSubstr("summary the/tag: sounds: Tensor must be 3-D or 2-D, not [3]"));
  EXPECT_THAT(audio_refusal(silence({1, 2, 3, 4})), HasSubstr("not [1,2,3,4]"));
  EXPECT_THAT(audio_refusal(Tensor::of<double>(Shape{1, 1}, {1})), HasSubstr("not double"));
  EXPECT_THAT(audio_refusal(silence({1, 4, 0})),
              HasSubstr("summary the/tag: a WAV file must have 1 to 32767 channels, not 0"));
  EXPECT_THAT(audio_refusal(silence({1, 1, 65536})), HasSubstr("not 65536"));
  EXPECT_THAT(audio_refusal(silence({1, 0})), HasSubstr("at least one frame"));
  EXPECT_THAT(audio_refusal(silence({1, 1}), 8000, 0), HasSubstr("max_outputs"));
  for (const float rate : {0.0f, -1.0f, NAN, INFINITY, 0.3f, 3e9f}) {
    EXPECT_NE(audio_refusal(silence({1, 1}), rate), "") << rate;
  }
  EXPECT_THAT(audio_refusal(silence({1, 1}), 0), HasSubstr("sample_rate must be > 0"));
}

}  // namespace
}  // namespace longhaul
