#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "longhaul/base/varint.h"

namespace longhaul {

// Takes the fields of a protocol buffer off the front of its bytes, without building the message. Each take_* returns
// false, and the rest is of no use, where the bytes do not hold what is asked for; no length is believed beyond their
// end. https://protobuf.dev/programming-guides/encoding
class WireReader {
 public:
  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  bool take_tag(uint32_t& field, uint32_t& type) {
    uint64_t tag;
    if (!take_varint(tag) || tag > UINT32_MAX || tag < 8) return false;
    field = static_cast<uint32_t>(tag >> 3);
    type = static_cast<uint32_t>(tag & 7);
    return true;
  }

  bool take_varint(uint64_t& value) { return longhaul::take_varint(rest_, value); }

  bool take_bytes(std::string_view& bytes) {
    uint64_t size;
    if (!take_varint(size) || size > rest_.size()) return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  template <typename T>
  bool take_fixed(T& value) {
    if (rest_.size() < sizeof value) return false;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return true;
  }

  bool skip(uint32_t type) {
    uint64_t number;
    uint32_t half;
    std::string_view bytes;
    switch (type) {
      case kVarint: return take_varint(number);
      case kFixed64: return take_fixed(number);
      case kBytes: return take_bytes(bytes);
      case kFixed32: return take_fixed(half);
      default: return false;  // groups, which no message here has
    }
  }

 private:
  std::string_view rest_;
};

// Calls `visit(bytes)` with each message, text or byte string that is field `number` of a message, in order, until it
// says false. False: it did, or the bytes are malformed.
template <typename Visit>
bool for_each_field(std::string_view message, uint32_t number, const Visit& visit) {
  uint32_t field, type;
  for (WireReader reader(message); !reader.done();) {
    std::string_view bytes;
    if (!reader.take_tag(field, type)) return false;
    if (field != number || type != WireReader::kBytes) {
      if (!reader.skip(type)) return false;
    } else if (!reader.take_bytes(bytes) || !visit(bytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace longhaul
