#include "longhaul/base/varint.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace longhaul {
namespace {

using namespace std::string_literals;

constexpr uint64_t kLargest = ~uint64_t{0};

std::string encoded(uint64_t value) {
  std::string text;
  append_varint(text, value);
  return text;
}

// Whether nothing is taken, and nothing changed.
bool is_refused(const std::string& text) {
  std::string_view rest = text;
  uint64_t value = 77;
  return !take_varint(rest, value) && rest == text && value == 77;
}

// The first two are those of https://protobuf.dev/programming-guides/encoding.
TEST(Varint, HasSevenBitsToAByteTheLowestFirst) {
  EXPECT_EQ(encoded(1), "\x01");
  EXPECT_EQ(encoded(150), "\x96\x01");
  EXPECT_EQ(encoded(0), "\0"s);
  EXPECT_EQ(encoded(kLargest), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Varint, ComesBackAndLeavesWhatFollows) {
  std::vector<uint64_t> numbers = {0, 1, kLargest, kLargest - 1};
  for (int bits = 1; bits < 64; ++bits) {
    for (const int more : {-1, 0, 1}) numbers.push_back((uint64_t{1} << bits) + static_cast<uint64_t>(more));
  }
  for (const uint64_t number : numbers) {
    const std::string text = encoded(number) + "rest";
    std::string_view rest = text;
    uint64_t value = ~number;
    ASSERT_TRUE(take_varint(rest, value)) << number;
    EXPECT_EQ(value, number);
    EXPECT_EQ(rest, "rest");
  }
}

TEST(Varint, APrefixOfOneIsRefused) {
  for (const uint64_t number : {uint64_t{128}, uint64_t{1} << 32, kLargest}) {
    const std::string text = encoded(number);
    for (size_t size = 0; size < text.size(); ++size) EXPECT_TRUE(is_refused(text.substr(0, size))) << size;
  }
}

TEST(Varint, OfMoreThan64BitsIsRefused) {
  const std::string nine(9, '\xff');
  EXPECT_TRUE(is_refused(nine + "\x02"));
  EXPECT_TRUE(is_refused(nine + "\x7f"));
}

TEST(Varint, OfMoreThanTenBytesIsRefused) {
  EXPECT_TRUE(is_refused(std::string(10, '\x80') + "\x01"));
  EXPECT_TRUE(is_refused(std::string(9, '\x80') + "\x81\0"s));
  EXPECT_TRUE(is_refused(std::string(1000, '\xff')));
}

// As protocol buffers take it: writers that leave room for a length fill it up so.
TEST(Varint, MayBeLongerThanItsNumberNeeds) {
  const std::string text = "\x85\x80\x80"s + "\0rest"s;
  std::string_view rest = text;
  uint64_t value = 0;
  ASSERT_TRUE(take_varint(rest, value));
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(rest, "rest");
}

}  // namespace
}  // namespace longhaul
