#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "longhaul/proto/summary.pb.h"
#include "longhaul/tensor/tensor.h"

// Functions that make summaries. A summary has values for one tag or, with images and audio, for several. TensorBoard
// shows each kind in a plugin:
//
//   scalar "scalars", histogram "histograms", image "images", audio "audio", text "text"; tensor: as its metadata says.
//
// All functions throw InvalidArgumentError, with a message that names the tag, for the values listed under "Refused".
namespace longhaul {

inline constexpr uint8_t kBadColor[] = {255, 0, 0, 255};  // red

// A scalar of any real dtype, or bool, becomes a float; it may be NaN or infinite. Refused: not exactly one element; a
// non-numeric dtype.
proto::Summary scalar_summary(std::string_view tag, float value);
proto::Summary scalar_summary(std::string_view tag, const Tensor& value);

// The distribution of the elements of a tensor (any real dtype, or bool): see Histogram. Refused: "Nan in summary
// histogram for: <tag>", "Infinity in ..."; strings or complex numbers.
proto::Summary histogram_summary(std::string_view tag, const Tensor& values);

// The first `max_outputs` images of a batch [images, height, width, channels], as PNG; their tags are "<tag>/image/0",
// "<tag>/image/1", ..., or "<tag>/image" if max_outputs is 1. 1 channel is grey, 3 are RGB, 4 RGBA.
//
// uint8 images are unchanged. In an image of floats (float, half, double) without negative values, the largest value
// becomes 255 and 0 stays 0. With a negative value, 0 becomes 128, and the value farthest from 0 becomes 1 or 255.
// Fractions are cut off (TensorFlow's summary_image_op.cc). A pixel with a NaN or an infinity gets the first elements
// of `bad_color`, one per channel.
//
// Refused: another rank, dtype or number of channels; images without pixels; max_outputs below 1; too short a colour.
proto::Summary image_summary(std::string_view tag, const Tensor& images, int64_t max_outputs = 3,
                             std::span<const uint8_t> bad_color = kBadColor);

// The first `max_outputs` clips of a batch of audio, floats from -1 to 1, [clips, frames, channels] or [clips, frames],
// as WAV (media/wav.h); tags as for images, with "audio". `sample_rate`: frames per second. Refused: another rank or
// dtype; a sample rate that is not above 0; anything that encode_wav() refuses; max_outputs below 1.
proto::Summary audio_summary(std::string_view tag, const Tensor& sounds, float sample_rate, int64_t max_outputs = 3);

// Text, which TensorBoard renders as Markdown: a single string, or a vector or matrix of strings as a table. Refused:
// dtypes other than string.
proto::Summary text_summary(std::string_view tag, const Tensor& texts);
proto::Summary text_summary(std::string_view tag, std::string text);

// Any tensor. The metadata names the plugin that shows it. TensorBoard's own server accepts tensors only for plugins
// that it knows ("scalars", "histograms", "text", "pr_curves", ...), in the form that each plugin expects.
proto::Summary tensor_summary(std::string_view tag, proto::TensorProto tensor, proto::SummaryMetadata metadata);

// Metadata that names a plugin. `content` is a message in the plugin's format; for version 0 of scalars, histograms and
// text, it is empty.
proto::SummaryMetadata plugin_metadata(std::string_view plugin, std::string_view content = "");

// Merges all values of all summaries. The second form takes and returns them serialised, and only scans the bytes.
// InvalidArgumentError: a non-empty tag occurs twice; a string is not a summary.
proto::Summary merge_summaries(std::span<const proto::Summary> summaries);
std::string merge_summaries(std::span<const std::string> serialized_summaries);

// InvalidArgumentError: the bytes are not a summary.
proto::Summary parse_summary(std::string_view serialized_summary);

// Whether any value has metadata. The second form only scans the bytes, and throws what parse_summary() throws.
bool has_metadata(const proto::Summary& summary);
bool has_metadata(std::string_view serialized_summary);

}  // namespace longhaul
