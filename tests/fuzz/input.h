#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longhaul::fuzz {

// The bytes of a fuzzer, taken apart from the front. At the end there are zeros and empty strings.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }

  uint8_t byte() {
    const std::string taken = bytes(1);
    return taken.empty() ? 0 : static_cast<uint8_t>(taken[0]);
  }

  std::string bytes(size_t count) {
    const std::string taken(rest_.substr(0, count));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  // With their number, a little-endian word, before them.
  std::string counted_bytes() {
    const size_t low = byte();
    return bytes(low | size_t{byte()} << 8);
  }

  std::string rest() { return bytes(rest_.size()); }

 private:
  std::string_view rest_;
};

}  // namespace longhaul::fuzz
