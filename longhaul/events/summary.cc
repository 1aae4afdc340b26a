#include "longhaul/events/summary.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <unordered_set>

#include "longhaul/base/error.h"
#include "longhaul/events/histogram.h"
#include "longhaul/events/summary_internal.h"

namespace longhaul {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using summary_internal::add_value;
using summary_internal::refuse;

bool is_number(DType dtype) {
  return is_floating(dtype) || is_integer(dtype) || dtype == kBool;
}

[[noreturn]] void throw_no_summary(size_t bytes) {
  throw InvalidArgumentError(fmt::format("the {} bytes are not a serialised Summary", bytes));
}

// Calls `read` for each Summary.Value of a serialised summary, which is all that it may read then.
template <typename Read>
void walk_values(std::string_view summary, const Read& read) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(summary.data()), static_cast<int>(summary.size()));
  constexpr uint32_t kValue = proto::Summary::kValueFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  while (uint32_t tag = in.ReadTag()) {
    if (tag != kValue) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    int length;
    if (!in.ReadVarintSizeAsInt(&length) || length > in.BytesUntilLimit()) throw_no_summary(summary.size());
    const auto limit = in.PushLimit(length);
    read(in);
    if (!in.ConsumedEntireMessage()) throw_no_summary(summary.size());
    in.PopLimit(limit);
  }
  if (!in.ConsumedEntireMessage()) throw_no_summary(summary.size());
}

bool value_has_metadata(CodedInputStream& in) {
  bool found = false;
  while (uint32_t tag = in.ReadTag()) {
    found |= WireFormatLite::GetTagFieldNumber(tag) == proto::Summary::Value::kMetadataFieldNumber;
    if (!WireFormatLite::SkipField(&in, tag)) break;
  }
  return found;
}

std::string tag_of_value(CodedInputStream& in) {
  constexpr uint32_t kTag = proto::Summary::Value::kTagFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  std::string found;
  while (uint32_t tag = in.ReadTag()) {
    if (tag == kTag ? !WireFormatLite::ReadString(&in, &found) : !WireFormatLite::SkipField(&in, tag)) break;
  }
  return found;
}

// TensorFlow's tensor summaries may come without a tag.
void check_new(const std::string& tag, std::unordered_set<std::string>& tags) {
  if (tag.empty() || tags.insert(tag).second) return;
  throw InvalidArgumentError(fmt::format("Duplicate tag {} found in summary inputs", tag));
}

template <typename T>
void add_elements(Histogram& histogram, const Tensor& values) {
  histogram.add(values.flat<T>());
}

void add_elements(std::string_view tag, const Tensor& values, Histogram& histogram) {
  switch (values.dtype()) {
    case kFloat: return add_elements<float>(histogram, values);
    case kDouble: return add_elements<double>(histogram, values);
    case kHalf: return add_elements<Half>(histogram, values);
    case kBFloat16: return add_elements<BFloat16>(histogram, values);
    case kInt8: return add_elements<int8_t>(histogram, values);
    case kInt16: return add_elements<int16_t>(histogram, values);
    case kInt32: return add_elements<int32_t>(histogram, values);
    case kInt64: return add_elements<int64_t>(histogram, values);
    case kUInt8: return add_elements<uint8_t>(histogram, values);
    case kUInt16: return add_elements<uint16_t>(histogram, values);
    case kUInt32: return add_elements<uint32_t>(histogram, values);
    case kUInt64: return add_elements<uint64_t>(histogram, values);
    case kBool: return add_elements<bool>(histogram, values);
    default: refuse(tag, fmt::format("a histogram needs numbers, not {} values", dtype_name(values.dtype())));
  }
}

}  // namespace

proto::Summary scalar_summary(std::string_view tag, float value) {
  proto::Summary summary;
  add_value(summary, tag)->set_simple_value(value);
  return summary;
}

proto::Summary scalar_summary(std::string_view tag, const Tensor& value) {
  if (value.num_elements() != 1 || !is_number(value.dtype())) {
    refuse(tag,
           fmt::format("a scalar must be one number, not {}{}", dtype_name(value.dtype()), value.shape().to_string()));
  }
  return scalar_summary(tag, value.item<float>());
}

proto::Summary histogram_summary(std::string_view tag, const Tensor& values) {
  Histogram histogram{std::string(tag)};
  add_elements(tag, values, histogram);
  proto::Summary summary;
  *add_value(summary, tag)->mutable_histo() = histogram.to_proto();
  return summary;
}

proto::Summary text_summary(std::string_view tag, const Tensor& texts) {
  if (texts.dtype() != kString)
    refuse(tag, fmt::format("a text summary needs strings, not {}", dtype_name(texts.dtype())));
  proto::TensorProto tensor;
  tensor.set_dtype(proto::DT_STRING);
  for (int64_t dim : texts.shape().dims()) tensor.mutable_tensor_shape()->add_dim()->set_size(dim);
  for (const std::string& text : texts.flat<std::string>()) tensor.add_string_val(text);
  return tensor_summary(tag, std::move(tensor), plugin_metadata("text"));
}

proto::Summary text_summary(std::string_view tag, std::string text) {
  proto::TensorProto tensor;
  tensor.set_dtype(proto::DT_STRING);
  tensor.add_string_val(std::move(text));
  return tensor_summary(tag, std::move(tensor), plugin_metadata("text"));
}

proto::Summary tensor_summary(std::string_view tag, proto::TensorProto tensor, proto::SummaryMetadata metadata) {
  proto::Summary summary;
  auto* value = add_value(summary, tag);
  *value->mutable_tensor() = std::move(tensor);
  *value->mutable_metadata() = std::move(metadata);
  return summary;
}

proto::SummaryMetadata plugin_metadata(std::string_view plugin, std::string_view content) {
  proto::SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name(std::string(plugin));
  metadata.mutable_plugin_data()->set_content(std::string(content));
  return metadata;
}

proto::Summary merge_summaries(std::span<const proto::Summary> summaries) {
  proto::Summary merged;
  std::unordered_set<std::string> tags;
  for (const auto& summary : summaries) {
    for (const auto& value : summary.value()) check_new(value.tag(), tags);
    merged.MergeFrom(summary);
  }
  return merged;
}

// Serialised messages one after the other are their merger.
std::string merge_summaries(std::span<const std::string> serialized_summaries) {
  std::string merged;
  std::unordered_set<std::string> tags;
  for (const auto& bytes : serialized_summaries) {
    walk_values(bytes, [&](CodedInputStream& in) { check_new(tag_of_value(in), tags); });
    merged += bytes;
  }
  return merged;
}

proto::Summary parse_summary(std::string_view serialized_summary) {
  proto::Summary summary;
  if (!summary.ParseFromArray(serialized_summary.data(), static_cast<int>(serialized_summary.size())))
    throw_no_summary(serialized_summary.size());
  return summary;
}

bool has_metadata(const proto::Summary& summary) {
  return std::any_of(summary.value().begin(), summary.value().end(), [](const auto& v) { return v.has_metadata(); });
}

bool has_metadata(std::string_view serialized_summary) {
  bool found = false;
  walk_values(serialized_summary, [&](CodedInputStream& in) { found |= value_has_metadata(in); });
  return found;
}

}  // namespace longhaul
