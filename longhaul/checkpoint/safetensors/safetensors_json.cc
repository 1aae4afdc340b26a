#include "longhaul/checkpoint/safetensors/safetensors_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

namespace longhaul {
namespace {

using nlohmann::json;

constexpr uint64_t kJsonBegin = 8;  // in the file, after its length

// Takes the header from the parser piece by piece. What is in no header is refused where it begins, so that nothing is
// nested deeper than a header is.
//
//   kNothing --{--> kTop --key, {--> kMetadata --}--> kTop
//                   kTop --key, {--> kTensor --key, [--> kShape or kOffsets --]--> kTensor --}--> kTop
class HeaderReader : public json::json_sax_t {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { refuse("a fraction or too large a number"); }
  bool binary(binary_t&) override { refuse("binary data"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(string_t& value) override;
  bool start_object(std::size_t) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(fmt::format("not JSON at byte {} of the file", kJsonBegin + position));
  }

 private:
  enum class In { kNothing, kTop, kMetadata, kTensor, kShape, kOffsets };

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void refuse(const char* what) const { fail(fmt::format("{} is not allowed here", what)); }
  void begin_field(std::string name);
  bool wants(std::string_view field) const { return in_ == In::kTensor && wanted_ == field; }

  const std::string& path_;
  SafetensorsHeader header_;
  In in_ = In::kNothing;
  std::unordered_set<std::string> names_;  // of the top level
  std::string name_;                       // the last of them
  std::string metadata_key_;
  std::vector<std::string> fields_;  // of the tensor, those that have come
  std::string wanted_;               // the one whose value comes next
  std::vector<int64_t> numbers_;     // of the list
};

void HeaderReader::fail(const std::string& what) const {
  std::string place = "the header";
  if (!names_.empty()) place += fmt::format(", at {}", quoted_name(name_));
  if (in_ >= In::kTensor && !fields_.empty()) place += ", " + fields_.back();
  throw DataLossError(fmt::format("{}: {}: {}", path_, place, what));
}

bool HeaderReader::number_unsigned(number_unsigned_t value) {
  if (in_ != In::kShape && in_ != In::kOffsets) refuse("a number");
  const size_t most = in_ == In::kShape ? kMaxSafetensorsRank : 2;
  if (numbers_.size() == most) fail(fmt::format("more than {} numbers", most));
  if (value > uint64_t{INT64_MAX}) fail(fmt::format("{} is too large", value));
  numbers_.push_back(static_cast<int64_t>(value));
  return true;
}

bool HeaderReader::string(string_t& value) {
  if (in_ == In::kMetadata) {
    header_.metadata[metadata_key_] = std::move(value);
  } else if (wants("dtype")) {
    header_.tensors.back().dtype = std::move(value);
    wanted_.clear();
  } else {
    refuse("a string");
  }
  return true;
}

bool HeaderReader::start_object(std::size_t) {
  if (in_ == In::kNothing) {
    in_ = In::kTop;
  } else if (in_ != In::kTop) {
    refuse("an object");
  } else if (name_ == kSafetensorsMetadata) {
    in_ = In::kMetadata;
  } else {
    header_.tensors.emplace_back().name = name_;
    fields_.clear();
    in_ = In::kTensor;
  }
  return true;
}

void HeaderReader::begin_field(std::string name) {
  if (name != "dtype" && name != "shape" && name != "data_offsets") {
    fail(fmt::format("unknown key {}", quoted_name(name)));
  }
  if (std::find(fields_.begin(), fields_.end(), name) != fields_.end()) fail(fmt::format("{} appears twice", name));
  fields_.push_back(name);
  wanted_ = std::move(name);
}

bool HeaderReader::key(string_t& name) {
  if (in_ == In::kMetadata) {
    if (header_.metadata.contains(name)) fail(fmt::format("{} appears twice", quoted_name(name)));
    metadata_key_ = std::move(name);
  } else if (in_ == In::kTensor) {
    begin_field(std::move(name));
  } else {
    name_ = std::move(name);
    if (!names_.insert(name_).second) fail("it appears twice");
  }
  return true;
}

bool HeaderReader::end_object() {
  if (in_ == In::kTensor && fields_.size() < 3) fail("dtype, shape or data_offsets is missing");
  in_ = In::kTop;
  return true;
}

bool HeaderReader::start_array(std::size_t) {
  if (!wants("shape") && !wants("data_offsets")) refuse("a list");
  in_ = wants("shape") ? In::kShape : In::kOffsets;
  wanted_.clear();
  numbers_.clear();
  return true;
}

bool HeaderReader::end_array() {
  SafetensorsEntry& entry = header_.tensors.back();
  if (in_ == In::kShape) {
    entry.shape = Shape(numbers_);
  } else {
    if (numbers_.size() != 2) fail(fmt::format("{} numbers, not 2", numbers_.size()));
    entry.begin = static_cast<uint64_t>(numbers_[0]);
    entry.end = static_cast<uint64_t>(numbers_[1]);
  }
  in_ = In::kTensor;
  return true;
}

std::string text_of(const std::string& text, const std::string& path) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw InvalidArgumentError(fmt::format("{}: {} is not UTF-8", path, quoted_name(text)));
  }
}

}  // namespace

SafetensorsHeader safetensors_from_json(std::string_view text, const std::string& path) {
  if (!text.starts_with('{')) throw DataLossError(fmt::format("{}: the header does not begin with \"{{\"", path));
  // To the parser a zero byte is the end.
  if (const size_t zero = text.find('\0'); zero != text.npos) {
    throw DataLossError(fmt::format("{}: the header has a zero byte at byte {} of the file", path, kJsonBegin + zero));
  }
  HeaderReader reader(path);
  json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

std::string safetensors_to_json(const SafetensorsHeader& header, const std::string& path) {
  std::string out = "{";
  std::string_view separator;
  if (!header.metadata.empty()) {
    out += fmt::format("\"{}\":{{", kSafetensorsMetadata);
    for (const auto& [key, value] : header.metadata) {
      out += fmt::format("{}{}:{}", std::exchange(separator, ","), text_of(key, path), text_of(value, path));
    }
    out += "}";
  }
  for (const SafetensorsEntry& entry : header.tensors) {
    out +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", std::exchange(separator, ","),
                    text_of(entry.name, path), entry.dtype, fmt::join(entry.shape.dims(), ","), entry.begin, entry.end);
  }
  return out + "}";
}

std::string quoted_name(std::string_view name) {
  constexpr size_t kMost = 100;
  std::string text;
  for (const char c : name.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return fmt::format("\"{}{}\"", text, name.size() > kMost ? "..." : "");
}

}  // namespace longhaul
