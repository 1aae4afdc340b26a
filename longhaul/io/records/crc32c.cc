#include "longhaul/io/records/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

namespace longhaul {

namespace {

constexpr size_t kChunkBytes = size_t{1} << 30;  // crc32_iscsi takes an int

// A polynomial over GF(2) modulo Castagnoli's, as a CRC has it: the highest bit is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = uint32_t{1} << 31;

constexpr uint32_t times_x(uint32_t a) {
  return (a >> 1) ^ (a & 1 ? kPolynomial : 0);
}

constexpr uint32_t product(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (; a != 0; a <<= 1, b = times_x(b)) {
    if (a & kOne) sum ^= b;
  }
  return sum;
}

// What a CRC is multiplied by when 2^i zero bytes follow: x^(8 * 2^i).
constexpr auto kPowersOfTwo = [] {
  std::array<uint32_t, 64> powers{};
  powers[0] = kOne >> 8;
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = product(powers[i - 1], powers[i - 1]);
  return powers;
}();

}  // namespace

uint32_t extend_crc32c(uint32_t crc, std::string_view data) {
  uint32_t state = ~crc;
  while (!data.empty()) {
    size_t count = std::min(data.size(), kChunkBytes);
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    state = crc32_iscsi(bytes, static_cast<int>(count), state);
    data.remove_prefix(count);
  }
  return ~state;
}

uint32_t combine_crc32c(uint32_t crc_a, uint32_t crc_b, uint64_t size_b) {
  for (size_t i = 0; size_b != 0; ++i, size_b >>= 1) {
    if (size_b & 1) crc_a = product(kPowersOfTwo[i], crc_a);
  }
  return crc_a ^ crc_b;
}

uint32_t crc32c(std::string_view data) {
  return extend_crc32c(0, data);
}

}  // namespace longhaul
