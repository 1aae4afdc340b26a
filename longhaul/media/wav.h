#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace longhaul {

inline constexpr size_t kWavHeaderBytes = 44;

// A WAV file of 16-bit PCM: a RIFF header, then the frames, each with one sample per channel. Source of the format:
// "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft, 1991), chapters 2 and 3.
//
// `samples` has the frames in order. 1 is the loudest; samples beyond are clipped, and NaN is silence. A sample x
// becomes 32768 x, rounded to nearest, halves away from zero.
//
// InvalidArgumentError: no frame, or an incomplete one; a number of channels (1 to 32767) or sample rate out of range;
// more bytes than the header can express (4 GiB). Any thread.
std::string encode_wav(std::span<const float> samples, int64_t sample_rate, int64_t channels);

}  // namespace longhaul
