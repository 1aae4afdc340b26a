#include <algorithm>
#include <cmath>

#include "longhaul/events/summary.h"
#include "longhaul/events/summary_internal.h"
#include "longhaul/media/wav.h"

namespace longhaul {
namespace {

using summary_internal::refuse;

void check(std::string_view tag, const Tensor& sounds, float sample_rate) {
  const Shape& shape = sounds.shape();
  if (shape.rank() != 2 && shape.rank() != 3)
    refuse(tag, "sounds: Tensor must be 3-D or 2-D, not " + shape.to_string());
  if (sounds.dtype() != kFloat) {
    refuse(tag, fmt::format("sounds must be float, from -1 to 1, not {}", dtype_name(sounds.dtype())));
  }
  constexpr float kMost = 4294967040.0f;  // the largest float below 2^32
  const bool is_rate = sample_rate > 0 && sample_rate <= kMost;
  if (!is_rate) refuse(tag, fmt::format("sample_rate must be > 0 and below 2^32, not {}", sample_rate));
}

std::string encode(std::string_view tag, std::span<const float> samples, float sample_rate, int64_t channels) {
  try {
    return encode_wav(samples, std::llround(sample_rate), channels);
  } catch (const InvalidArgumentError& error) {
    refuse(tag, error.what());
  }
}

}  // namespace

proto::Summary audio_summary(std::string_view tag, const Tensor& sounds, float sample_rate, int64_t max_outputs) {
  summary_internal::check_max_outputs(tag, max_outputs);
  check(tag, sounds, sample_rate);
  const Shape& shape = sounds.shape();
  const int64_t frames = shape.dim(1), channels = shape.rank() == 2 ? 1 : shape.dim(2);
  const auto size = static_cast<size_t>(frames * channels);
  proto::Summary summary;
  for (int64_t i = 0; i < std::min(shape.dim(0), max_outputs); ++i) {
    const auto samples = sounds.flat<float>().subspan(static_cast<size_t>(i) * size, size);
    const std::string output = summary_internal::output_tag(tag, "audio", i, max_outputs);
    auto* audio = summary_internal::add_value(summary, output)->mutable_audio();
    audio->set_sample_rate(sample_rate);
    audio->set_num_channels(channels);
    audio->set_length_frames(frames);
    audio->set_content_type("audio/wav");
    audio->set_encoded_audio_string(encode(tag, samples, sample_rate, channels));
  }
  return summary;
}

}  // namespace longhaul
