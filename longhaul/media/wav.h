#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace longhaul {

inline constexpr size_t kWavHeaderBytes = 44;

// Returns a WAV file of 16-bit PCM: a RIFF header, then the frames, each with one sample per channel. Source of the
// format: "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft, 1991), chapters 2 and 3.
//
// `samples` contains the frames in order. A sample x becomes 32768 x, rounded to nearest, halves away from zero.
// Samples beyond 1 and -1 are clipped, and NaN becomes silence.
//
// InvalidArgumentError: there is no frame, or an incomplete one; the number of channels (1 to 32767) or the sample rate
// is out of range; the file would be larger than its header can express (4 GiB). Any thread may call.
std::string encode_wav(std::span<const float> samples, int64_t sample_rate, int64_t channels);

}  // namespace longhaul
