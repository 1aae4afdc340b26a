#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace longhaul {

inline constexpr size_t kWavHeaderBytes = 44;

// A WAV file of 16-bit PCM: a RIFF header, then the frames, a sample for each channel in each of them. Source of the
// format: "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft, 1991), chapters 2 and 3.
//
// `samples` has the frames one after the other. 1 is the loudest; what is beyond is cut off, and NaN is silence. A
// sample x becomes 32768 x, rounded to the nearest, halves away from zero.
//
// InvalidArgumentError: no whole frame or a part of one; no such number of channels (1 to 32767) or sample rate; more
// bytes than the header can say (4 GiB). Any thread.
std::string encode_wav(std::span<const float> samples, int64_t sample_rate, int64_t channels);

}  // namespace longhaul
