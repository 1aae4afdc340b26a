#include "longhaul/checkpoint/bundle/ordered_code.h"

#include <bit>

namespace longhaul {
namespace {

void append_big_endian(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

void append_ordered_unsigned(std::string& out, uint64_t value) {
  const int bytes = (std::bit_width(value) + 7) / 8;
  out.push_back(static_cast<char>(bytes));
  append_big_endian(out, value, bytes);
}

// n bytes hold 7n-1 bits of magnitude; the leading n bits of the result, xor-ed with the sign, say how many bytes there
// are.
void append_ordered_signed(std::string& out, int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  const int bytes = std::bit_width(magnitude) / 7 + 1;
  std::string code(2, value < 0 ? '\xff' : '\0');
  append_big_endian(code, static_cast<uint64_t>(value), 8);
  code.erase(0, static_cast<size_t>(10 - bytes));
  const uint32_t header = 0xffff0000u >> bytes;
  code[0] ^= static_cast<char>(header >> 8);
  if (bytes > 1) code[1] ^= static_cast<char>(header);
  out += code;
}

void append_ordered_string(std::string& out, std::string_view text) {
  for (const char c : text) {
    out.push_back(c);
    if (c == '\0') out.push_back('\xff');
    if (c == '\xff') out.push_back('\0');
  }
  out += std::string_view("\0\1", 2);
}

}  // namespace longhaul
