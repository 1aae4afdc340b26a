#include "longhaul/graph/field_count.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

namespace longhaul {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

class FieldCounter {
 public:
  explicit FieldCounter(uint64_t most) : most_(most) {}

  // false: malformed, or too deep.
  bool count(const Descriptor& type, std::string_view bytes, int deepest) {
    if (deepest == 0) return false;
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                              static_cast<int>(bytes.size()));
    while (const uint32_t tag = in.ReadTag()) {
      if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (!WireFormatLite::SkipField(&in, tag)) return false;
        continue;
      }
      uint32_t size = 0;
      if (!in.ReadVarint32(&size) || size > bytes.size() - static_cast<size_t>(in.CurrentPosition())) return false;
      if (++count_ > most_) return true;
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const std::string_view inner = bytes.substr(static_cast<size_t>(in.CurrentPosition()), size);
      if (field != nullptr && field->message_type() != nullptr && !count(*field->message_type(), inner, deepest - 1)) {
        return false;
      }
      in.Skip(static_cast<int>(size));
    }
    return true;
  }

  uint64_t counted() const { return count_; }

 private:
  const uint64_t most_;
  uint64_t count_ = 0;
};

}  // namespace

std::optional<uint64_t> count_fields(const Descriptor& type, std::string_view bytes, int deepest, uint64_t most) {
  FieldCounter counter(most);
  if (!counter.count(type, bytes, deepest)) return std::nullopt;
  return counter.counted();
}

uint64_t count_text_fields(std::string_view text) {
  uint64_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '<') ++count;
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size() - 1);
    } else if (c == '"' || c == '\'') {
      ++count;
      for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i) i += text[i] == '\\';
    }
  }
  return count;
}

}  // namespace longhaul
