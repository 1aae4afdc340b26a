#pragma once

#include <span>
#include <string>
#include <string_view>

#include "longhaul/proto/summary.pb.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Summaries with one value. A scalar of any real dtype, or bool, becomes a float; it may be NaN or infinite.
// InvalidArgumentError: not exactly one element; no number.
proto::Summary scalar_summary(std::string_view tag, float value);
proto::Summary scalar_summary(std::string_view tag, const Tensor& value);

// How the elements of a tensor of any real dtype, or bool, are spread: see Histogram.
// InvalidArgumentError: "Nan in summary histogram for: <tag>", "Infinity in ..."; strings or complex numbers.
proto::Summary histogram_summary(std::string_view tag, const Tensor& values);

// All values of all summaries; the second form takes and gives them serialised.
// InvalidArgumentError: a tag that is there twice; a string that is no summary.
proto::Summary merge_summaries(std::span<const proto::Summary> summaries);
std::string merge_summaries(std::span<const std::string> serialized_summaries);

// The name with what a tag must not contain replaced by "_": all but letters, digits, "-", "/", "_" and "."; without
// slashes at its beginning. Bytes of UTF-8 are kept. A change is logged.
std::string clean_tag(std::string_view name);

// InvalidArgumentError: the bytes are no summary.
proto::Summary parse_summary(std::string_view serialized_summary);

// Whether a value comes with metadata. The second form only walks over the bytes, and throws as parse_summary() does.
bool has_metadata(const proto::Summary& summary);
bool has_metadata(std::string_view serialized_summary);

}  // namespace longhaul
