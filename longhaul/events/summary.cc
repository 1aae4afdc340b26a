#include "longhaul/events/summary.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/events/histogram.h"

namespace longhaul {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

bool is_tag_byte(char byte) {
  auto b = static_cast<unsigned char>(byte);
  return std::isalnum(b) || b >= 0x80 || b == '-' || b == '/' || b == '_' || b == '.';
}

[[noreturn]] void throw_no_summary(size_t bytes) {
  throw InvalidArgumentError(fmt::format("{} bytes that should be a serialised Summary are none", bytes));
}

[[noreturn]] void throw_duplicate(const std::string& tag) {
  throw InvalidArgumentError(fmt::format("Duplicate tag {} found in summary inputs", tag));
}

// Walks over the fields of one Summary.Value, which is all that `in` may read now.
bool value_has_metadata(CodedInputStream& in) {
  bool found = false;
  while (uint32_t tag = in.ReadTag()) {
    found |= WireFormatLite::GetTagFieldNumber(tag) == proto::Summary::Value::kMetadataFieldNumber;
    if (!WireFormatLite::SkipField(&in, tag)) break;
  }
  return found;
}

void merge_into(proto::Summary& merged, const proto::Summary& summary, std::unordered_set<std::string>& tags) {
  for (const auto& value : summary.value())
    if (!tags.insert(value.tag()).second) throw_duplicate(value.tag());
  merged.MergeFrom(summary);
}

template <typename T>
void add_elements(Histogram& histogram, const Tensor& values) {
  histogram.add(values.flat<T>());
}

void add_elements(Histogram& histogram, const Tensor& values) {
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
    default: throw InvalidArgumentError(fmt::format("no histogram of {} values", dtype_name(values.dtype())));
  }
}

}  // namespace

proto::Summary scalar_summary(std::string_view tag, float value) {
  proto::Summary summary;
  auto* entry = summary.add_value();
  entry->set_tag(std::string(tag));
  entry->set_simple_value(value);
  return summary;
}

proto::Summary scalar_summary(std::string_view tag, const Tensor& value) {
  return scalar_summary(tag, value.item<float>());
}

proto::Summary histogram_summary(std::string_view tag, const Tensor& values) {
  Histogram histogram{std::string(tag)};
  add_elements(histogram, values);
  proto::Summary summary;
  auto* entry = summary.add_value();
  entry->set_tag(std::string(tag));
  *entry->mutable_histo() = histogram.to_proto();
  return summary;
}

proto::Summary merge_summaries(std::span<const proto::Summary> summaries) {
  proto::Summary merged;
  std::unordered_set<std::string> tags;
  for (const auto& summary : summaries) merge_into(merged, summary, tags);
  return merged;
}

std::string merge_summaries(std::span<const std::string> serialized_summaries) {
  proto::Summary merged;
  std::unordered_set<std::string> tags;
  for (const auto& bytes : serialized_summaries) merge_into(merged, parse_summary(bytes), tags);
  return merged.SerializeAsString();
}

std::string clean_tag(std::string_view name) {
  std::string tag(name.substr(std::min(name.find_first_not_of('/'), name.size())));
  for (char& byte : tag)
    if (!is_tag_byte(byte)) byte = '_';
  if (tag != name) log_info("summary name \"{}\" is no tag; using \"{}\" instead", name, tag);
  return tag;
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
  CodedInputStream in(reinterpret_cast<const uint8_t*>(serialized_summary.data()),
                      static_cast<int>(serialized_summary.size()));
  constexpr uint32_t kValue = proto::Summary::kValueFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  bool found = false;
  while (uint32_t tag = in.ReadTag()) {
    if (tag != kValue) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    int length;
    if (!in.ReadVarintSizeAsInt(&length) || length > in.BytesUntilLimit()) throw_no_summary(serialized_summary.size());
    auto limit = in.PushLimit(length);
    found |= value_has_metadata(in);
    if (!in.ConsumedEntireMessage()) throw_no_summary(serialized_summary.size());
    in.PopLimit(limit);
  }
  if (!in.ConsumedEntireMessage()) throw_no_summary(serialized_summary.size());
  return found;
}

}  // namespace longhaul
