#include "longhaul/data/example_order.h"

#include <algorithm>
#include <bit>

namespace longhaul {
namespace {

constexpr int kRounds = 6;
constexpr int kLeastHalfBits = 4;  // with fewer, the rounds are too few functions to make every order as likely

// The finaliser of splitmix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit.
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

int half_bits_for(uint64_t count) {
  return std::max(kLeastHalfBits, static_cast<int>(std::bit_width(count - 1) + 1) / 2);
}

}  // namespace

ExampleOrder::ExampleOrder(int64_t count, uint64_t seed)
    : count_(static_cast<uint64_t>(count)), seed_(mix(seed)), half_bits_(half_bits_for(count_)) {}

// A Feistel network permutes a power of four of numbers, whatever its rounds compute (M. Luby, C. Rackoff, "How to
// construct pseudorandom permutations from pseudorandom functions", SIAM J. Comput. 17, 1988). Walking on until the
// number is one of ours permutes those (J. Black, P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
int64_t ExampleOrder::at(int64_t position) const {
  const uint64_t epoch = static_cast<uint64_t>(position) / count_;
  const uint64_t key = mix(seed_ ^ epoch);
  uint64_t value = permute(static_cast<uint64_t>(position) % count_, key);
  while (value >= count_) value = permute(value, key);
  return static_cast<int64_t>(value);
}

uint64_t ExampleOrder::permute(uint64_t value, uint64_t key) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (mix(key + (right << 3) + static_cast<uint64_t>(round)) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace longhaul
