#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "longhaul/proto/summary.pb.h"
#include "longhaul/tensor/tensor.h"

// Summaries with values for one tag or, of images and sounds, for several. TensorBoard's plugins show each kind:
//
//   scalar "scalars", histogram "histograms", image "images", audio "audio", text "text"; tensor: as its metadata says.
//
// InvalidArgumentError of all of them: what cannot be shown; the message names the tag.
namespace longhaul {

inline constexpr uint8_t kBadColor[] = {255, 0, 0, 255};  // red

// A scalar of any real dtype, or bool, becomes a float; it may be NaN or infinite. Refused: not exactly one element; no
// number.
proto::Summary scalar_summary(std::string_view tag, float value);
proto::Summary scalar_summary(std::string_view tag, const Tensor& value);

// How the elements of a tensor of any real dtype, or bool, are spread: see Histogram.
// Refused: "Nan in summary histogram for: <tag>", "Infinity in ..."; strings or complex numbers.
proto::Summary histogram_summary(std::string_view tag, const Tensor& values);

// The first `max_outputs` images of a batch [images, height, width, channels], as PNG; their tags are "<tag>/image/0",
// "<tag>/image/1", ..., or "<tag>/image" where max_outputs is 1. 1 channel is grey, 3 are RGB, 4 RGBA.
//
// uint8 is taken as it is. In an image of floats (float, half, double) the largest value becomes 255 and 0 stays 0 or,
// if a value is negative, 0 becomes 128 and the value that is farthest from it 1 or 255; fractions are cut off
// (TensorFlow's summary_image_op.cc). A pixel with a NaN or an infinity gets `bad_color`, as much of it as there are
// channels.
//
// Refused: another rank, dtype or number of channels; images without pixels; max_outputs below 1; too short a colour.
proto::Summary image_summary(std::string_view tag, const Tensor& images, int64_t max_outputs = 3,
                             std::span<const uint8_t> bad_color = kBadColor);

// The first `max_outputs` sounds of a batch of floats from -1 to 1, [sounds, frames, channels] or [sounds, frames], as
// WAV (media/wav.h); tags as for images, with "audio". `sample_rate`: frames per second.
// Refused: another rank or dtype; a sample rate that is not above 0; what encode_wav() refuses; max_outputs below 1.
proto::Summary audio_summary(std::string_view tag, const Tensor& sounds, float sample_rate, int64_t max_outputs = 3);

// Text, which TensorBoard renders as Markdown: one, or a vector or matrix of them as a table. Refused: no strings.
proto::Summary text_summary(std::string_view tag, const Tensor& texts);
proto::Summary text_summary(std::string_view tag, std::string text);

// Any tensor. The plugin that shows it is named in the metadata; TensorBoard's own server passes on only those that it
// knows ("scalars", "histograms", "text", "pr_curves", ...), in the form that each wants.
proto::Summary tensor_summary(std::string_view tag, proto::TensorProto tensor, proto::SummaryMetadata metadata);

// Metadata that names a plugin. `content` is a message of the plugin's; version 0 of what scalars, histograms and text
// want is empty.
proto::SummaryMetadata plugin_metadata(std::string_view plugin, std::string_view content = "");

// All values of all summaries; the second form takes and gives them serialised, and only walks over the bytes.
// InvalidArgumentError: a tag that is there twice, if it is not empty; a string that is no summary.
proto::Summary merge_summaries(std::span<const proto::Summary> summaries);
std::string merge_summaries(std::span<const std::string> serialized_summaries);

// InvalidArgumentError: the bytes are no summary.
proto::Summary parse_summary(std::string_view serialized_summary);

// Whether a value comes with metadata. The second form only walks over the bytes, and throws as parse_summary() does.
bool has_metadata(const proto::Summary& summary);
bool has_metadata(std::string_view serialized_summary);

}  // namespace longhaul
