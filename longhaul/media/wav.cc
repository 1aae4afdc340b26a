#include "longhaul/media/wav.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr uint64_t kMost32 = UINT32_MAX;
constexpr uint64_t kSampleBytes = sizeof(int16_t);
constexpr int64_t kMostChannels = UINT16_MAX / kSampleBytes;  // the size of a frame has 16 bits

// A number of the header: the lowest byte first.
void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

// The largest float below a half: a half itself would make 1 of what is just below it.
constexpr float kHalf = 0.49999997f;

int16_t to_pcm(float sample) {
  const float scaled = std::isnan(sample) ? 0.0f : sample * 32768.0f;
  const float cut = std::min(std::max(scaled, -32768.0f), 32767.0f);
  return static_cast<int16_t>(static_cast<int32_t>(cut + std::copysign(kHalf, cut)));
}

void check(uint64_t samples, int64_t sample_rate, int64_t channels) {
  const auto refuse = [](const std::string& why) { throw InvalidArgumentError("a WAV file " + why); };
  if (channels < 1 || channels > kMostChannels) {
    refuse(fmt::format("must have 1 to {} channels, not {}", kMostChannels, channels));
  }
  const uint64_t frame_bytes = static_cast<uint64_t>(channels) * kSampleBytes;
  if (sample_rate < 1 || static_cast<uint64_t>(sample_rate) > kMost32 / frame_bytes) {
    refuse(fmt::format("with {} channels cannot have {} frames per second", channels, sample_rate));
  }
  if (samples == 0 || samples % static_cast<uint64_t>(channels) != 0) {
    refuse(fmt::format("must have at least one frame and no incomplete ones, not {} samples of {} channels", samples,
                       channels));
  }
  if (samples > (kMost32 - kWavHeaderBytes) / kSampleBytes) refuse(fmt::format("cannot hold {} samples", samples));
}

void put_header(std::string& out, uint64_t samples, uint64_t sample_rate, uint64_t channels) {
  constexpr uint64_t kPcm = 1, kFormatBytes = 16, kNameAndSize = 8;
  const uint64_t frame_bytes = channels * kSampleBytes, data_bytes = samples * kSampleBytes;
  out += "RIFF";
  put(out, kWavHeaderBytes - kNameAndSize + data_bytes, 4);
  out += "WAVEfmt ";
  put(out, kFormatBytes, 4);
  put(out, kPcm, 2);
  put(out, channels, 2);
  put(out, sample_rate, 4);
  put(out, sample_rate * frame_bytes, 4);
  put(out, frame_bytes, 2);
  put(out, 8 * kSampleBytes, 2);
  out += "data";
  put(out, data_bytes, 4);
}

}  // namespace

std::string encode_wav(std::span<const float> samples, int64_t sample_rate, int64_t channels) {
  check(samples.size(), sample_rate, channels);
  std::string out;
  out.reserve(kWavHeaderBytes + samples.size() * kSampleBytes);
  put_header(out, samples.size(), static_cast<uint64_t>(sample_rate), static_cast<uint64_t>(channels));
  std::array<int16_t, 4096> pcm;
  for (size_t done = 0; done < samples.size(); done += pcm.size()) {
    const size_t count = std::min(pcm.size(), samples.size() - done);
    for (size_t i = 0; i < count; ++i) pcm[i] = to_pcm(samples[done + i]);
    out.append(reinterpret_cast<const char*>(pcm.data()), count * kSampleBytes);
  }
  return out;
}

}  // namespace longhaul
