#include "longhaul/proto/parsed_size.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "longhaul/proto/wire_reader.h"

namespace longhaul::proto {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr uint64_t kBlock = 16;            // what malloc adds to a piece of memory
constexpr uint64_t kPointers = 16;         // of a repeated field, whose array grows by doubling
constexpr uint64_t kString = 32 + kBlock;  // without its characters
constexpr uint64_t kInsideString = 15;     // characters that need no memory of their own
constexpr uint64_t kMapEntry = 64;         // without key and value
constexpr uint64_t kMap = 96;              // with its first entry
constexpr uint64_t kUnknownField = 32;
constexpr size_t kHarmless = 256 * 1024;  // bytes that cannot take kParsedBase

uint64_t string_size(size_t characters) {
  return kString + (characters > kInsideString ? characters + 1 + kBlock : 0);
}

// A number in the array of a repeated field, which grows by doubling.
uint64_t number_size(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE: return 2 * 8;
    case FieldDescriptor::CPPTYPE_BOOL: return 2;
    default: return 2 * 4;
  }
}

uint64_t packed_numbers(const FieldDescriptor& field, std::string_view bytes) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64: return bytes.size() / 8;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32: return bytes.size() / 4;
    default:
      return static_cast<uint64_t>(std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0x80) == 0; }));
  }
}

// The sizes of messages without contents. Entries of maps are none.
class ObjectSizes {
 public:
  uint64_t of(const Descriptor& type) {
    uint64_t& size = sizes_[&type];
    if (size == 0) {
      const auto* prototype = google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
      size = prototype == nullptr ? kUnknownField : prototype->SpaceUsedLong() + kBlock;
    }
    return size;
  }

 private:
  std::unordered_map<const Descriptor*, uint64_t> sizes_;
};

class BinaryMeter {
 public:
  explicit BinaryMeter(uint64_t most) : most_(most) {}

  // false: malformed, or too deep.
  bool add(const Descriptor& type, std::string_view bytes, int deepest) {
    if (deepest == 0) return false;
    bool has_map = false;
    for (WireReader reader(bytes); !reader.done() && size_ <= most_;) {
      uint32_t number, wire_type;
      if (!reader.take_tag(number, wire_type)) return false;
      const FieldDescriptor* field = type.FindFieldByNumber(static_cast<int>(number));
      if (wire_type != WireReader::kBytes) {
        if (!reader.skip(wire_type)) return false;
        add_number(field);
        continue;
      }
      std::string_view inner;
      if (!reader.take_bytes(inner)) return false;
      if (field != nullptr && field->is_map() && !std::exchange(has_map, true)) size_ += kMap;
      if (!add_bytes(field, inner, deepest)) return false;
    }
    return true;
  }

  uint64_t size() const { return size_; }

 private:
  void add_number(const FieldDescriptor* field) {
    if (field == nullptr) {
      size_ += kUnknownField;
    } else if (field->is_repeated()) {
      size_ += field->is_packable() ? number_size(*field) : kUnknownField;
    }
  }

  bool add_bytes(const FieldDescriptor* field, std::string_view bytes, int deepest) {
    if (field == nullptr) {
      size_ += kUnknownField + string_size(bytes.size());
    } else if (field->message_type() != nullptr) {
      const Descriptor& type = *field->message_type();
      size_ += field->is_map() ? kMapEntry : sizes_.of(type) + (field->is_repeated() ? kPointers : 0);
      return add(type, bytes, deepest - 1);
    } else if (field->is_packable()) {
      size_ += kString + packed_numbers(*field, bytes) * number_size(*field);
    } else {
      size_ += string_size(bytes.size()) + (field->is_repeated() ? kPointers : 0);
    }
    return true;
  }

  const uint64_t most_;
  uint64_t size_ = 0;
  ObjectSizes sizes_;
};

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

class TextMeter {
 public:
  TextMeter(const Descriptor& type, std::string_view text, uint64_t most) : text_(text), most_(most) {
    levels_.push_back({&type, {}});
  }

  uint64_t size() {
    for (size_t at = 0; at < text_.size() && size_ <= most_;) at = take(at);
    return size_;
  }

 private:
  struct Level {
    const Descriptor* type = nullptr;  // null: not known
    std::string_view name;             // of the field that came last
  };

  // Takes what begins there, and returns where it ends.
  size_t take(size_t at) {
    const char c = text_[at];
    switch (c) {
      case '{':
      case '<': return begin_message(), at + 1;
      case '}':
      case '>': return end_message(), at + 1;
      case ':':
      case ',': return size_ += kPointers, at + 1;
      case '"':
      case '\'': return take_string(at);
      case '#': return std::min(text_.find('\n', at), text_.size());
      default: break;
    }
    return is_of_name(c) ? take_name(at) : at + 1;
  }

  void begin_message() {
    const Descriptor* inner = inner_type(levels_.back().type, std::string(levels_.back().name));
    if (inner != nullptr) size_ += kPointers + (inner->options().map_entry() ? kMapEntry + kMap : sizes_.of(*inner));
    if (levels_.size() < kDeepest) levels_.push_back({inner, {}});
  }

  static const Descriptor* inner_type(const Descriptor* type, const std::string& name) {
    if (type == nullptr) return nullptr;
    const FieldDescriptor* field = type->FindFieldByName(name);
    if (field != nullptr) return field->message_type();
    const bool is_any = type->full_name() == "google.protobuf.Any";  // "[type.googleapis.com/NAME] {"
    return is_any ? type->file()->pool()->FindMessageTypeByName(name) : nullptr;
  }

  void end_message() {
    if (levels_.size() > 1) levels_.pop_back();
  }

  size_t take_string(size_t at) {
    const char quote = text_[at];
    size_t end = at + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    size_ += string_size(end - at) + kPointers;
    return end + 1;
  }

  size_t take_name(size_t at) {
    size_t end = at;
    while (end < text_.size() && is_of_name(text_[end])) ++end;
    // What stands behind a colon or a comma is a value.
    size_t before = at;
    while (before > 0 && (text_[before - 1] == ' ' || text_[before - 1] == '[')) --before;
    const bool is_value = before > 0 && (text_[before - 1] == ':' || text_[before - 1] == ',');
    if (!is_value) levels_.back().name = text_.substr(at, end - at);
    return end;
  }

  static constexpr size_t kDeepest = 1000;

  const std::string_view text_;
  const uint64_t most_;
  uint64_t size_ = 0;
  std::vector<Level> levels_;
  ObjectSizes sizes_;
};

}  // namespace

std::optional<uint64_t> parsed_size(const Descriptor& type, std::string_view bytes, int deepest, uint64_t most) {
  BinaryMeter meter(most);
  if (!meter.add(type, bytes, deepest)) return std::nullopt;
  return meter.size();
}

uint64_t parsed_text_size(const Descriptor& type, std::string_view text, uint64_t most) {
  return TextMeter(type, text, most).size();
}

bool parse_within_limits(std::string_view bytes, google::protobuf::Message* message) {
  if (bytes.size() > INT32_MAX) return false;
  if (bytes.size() > kHarmless) {
    const uint64_t most = most_parsed_size(bytes.size());
    const auto size = parsed_size(*message->GetDescriptor(), bytes, 100, most);
    if (!size || *size > most) return false;
  }
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace longhaul::proto
