#include "longhaul/media/wav.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> samples_of(const std::string& wav) {
  std::vector<int> samples;
  for (size_t i = kWavHeaderBytes; i + 1 < wav.size(); i += 2) {
    samples.push_back(static_cast<int16_t>(static_cast<uint8_t>(wav[i]) | static_cast<uint8_t>(wav[i + 1]) << 8));
  }
  return samples;
}

std::string wav_refusal(const std::vector<float>& samples, int64_t sample_rate, int64_t channels) {
  return refusal_of([&] { encode_wav(samples, sample_rate, channels); });
}

// The bytes follow the example of a header in chapter 3 of the specification.
TEST(Wav, TheHeaderSaysWhatFollows) {
  const std::vector<float> stereo = {0, 0.5f, -0.5f, 1};
  const std::string wav = encode_wav(stereo, 22050, 2);
  const char header[] =
      "RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0"
      "\x22\x56\0\0"  // 22050
      "\x88\x58\1\0"  // 88200 bytes a second
      "\4\0\x10\0"
      "data\x08\0\0\0";
  EXPECT_EQ(wav.substr(0, kWavHeaderBytes), std::string(header, kWavHeaderBytes));
  EXPECT_THAT(samples_of(wav), ElementsAre(0, 16384, -16384, 32767));
}

TEST(Wav, SamplesAreRoundedAndCutOff) {
  const float unit = 1.0f / 32768;
  const std::vector<float> samples = {1, 2, INFINITY, -1, -3, -INFINITY, NAN, 0.49f * unit, 0.5f * unit, -1.5f * unit};
  EXPECT_THAT(samples_of(encode_wav(samples, 8000, 1)),
              ElementsAre(32767, 32767, 32767, -32768, -32768, -32768, 0, 0, 1, -2));
}

TEST(Wav, WhatIsJustBelowAHalfIsRoundedDown) {
  const float below = std::nextafter(0.5f, 0.0f) / 32768;
  EXPECT_THAT(samples_of(encode_wav(std::vector<float>{below, -below}, 8000, 1)), ElementsAre(0, 0));
}

TEST(Wav, EverySampleIsRoundedToTheNearest) {
  std::vector<float> samples;
  for (int i = -70000; i <= 70000; ++i) samples.push_back(static_cast<float>(i) / 65536 + (i % 3) * 1e-9f);
  const std::vector<int> encoded = samples_of(encode_wav(samples, 8000, 1));
  ASSERT_EQ(encoded.size(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const float wanted = std::fmin(std::fmax(std::round(samples[i] * 32768), -32768.0f), 32767.0f);
    ASSERT_EQ(encoded[i], wanted) << samples[i];
  }
}

TEST(Wav, WhatTheHeaderCannotSayIsRefused) {
  EXPECT_THAT(wav_refusal({1, 2, 3}, 8000, 2), HasSubstr("3 samples of 2 channels"));
  EXPECT_THAT(wav_refusal({}, 8000, 1), HasSubstr("at least one frame"));
  EXPECT_THAT(wav_refusal({1}, 0, 1), HasSubstr("0 frames per second"));
  EXPECT_THAT(wav_refusal({1, 1}, int64_t{1} << 30, 2), HasSubstr("frames per second"));
  EXPECT_THAT(wav_refusal({1}, 8000, 0), HasSubstr("1 to 32767 channels, not 0"));
  EXPECT_THAT(wav_refusal(std::vector<float>(32768), 8000, 32768), HasSubstr("not 32768"));
  EXPECT_EQ(wav_refusal(std::vector<float>(32767), 8000, 32767), "");
}

}  // namespace
}  // namespace longhaul
