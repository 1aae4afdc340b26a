#include "longhaul/checkpoint/bundle/ordered_code.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace longhaul {
namespace {

std::string of_signed(int64_t value) {
  std::string out;
  append_ordered_signed(out, value);
  return out;
}

std::string of_unsigned(uint64_t value) {
  std::string out;
  append_ordered_unsigned(out, value);
  return out;
}

std::string of_string(std::string_view text) {
  std::string out;
  append_ordered_string(out, text);
  return out;
}

// The vectors are worked out from the rule in docs/formats/tensor_bundle.md.
TEST(OrderedCode, WritesSignedNumbersAsTheFormatSays) {  // CB-32
  EXPECT_EQ(of_signed(0), "\x80");
  EXPECT_EQ(of_signed(-1), "\x7f");
  EXPECT_EQ(of_signed(5), "\x85");
  EXPECT_EQ(of_signed(63), "\xbf");
  EXPECT_EQ(of_signed(64), "\xc0\x40");
  EXPECT_EQ(of_signed(-64), "\x40");
  EXPECT_EQ(of_signed(-65), "\x3f\xbf");
  EXPECT_EQ(of_signed(300), "\xc1\x2c");
  EXPECT_EQ(of_signed(1618), "\xc6\x52");
  EXPECT_EQ(of_signed(int64_t{1} << 31), std::string("\xf8\x80\0\0\0", 5));
  EXPECT_EQ(of_signed(std::numeric_limits<int64_t>::max()), "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_EQ(of_signed(std::numeric_limits<int64_t>::min()), std::string("\x00\x3f\x80\0\0\0\0\0\0\0", 10));
}

TEST(OrderedCode, WritesUnsignedNumbersWithTheirLength) {  // CB-32
  EXPECT_EQ(of_unsigned(0), std::string("\0", 1));
  EXPECT_EQ(of_unsigned(5), "\x01\x05");
  EXPECT_EQ(of_unsigned(0x1234), "\x02\x12\x34");
}

TEST(OrderedCode, EscapesTheTwoBytesThatEndAString) {  // CB-32
  EXPECT_EQ(of_string("ab"), std::string("ab\0\1", 4));
  EXPECT_EQ(of_string(std::string_view("\0\xff", 2)), std::string("\0\xff\xff\0\0\1", 6));
}

TEST(OrderedCode, BytesSortAsTheNumbersDo) {
  std::vector<int64_t> numbers;
  for (int bit = 62; bit >= 0; --bit) numbers.push_back(-(int64_t{1} << bit));
  numbers.insert(numbers.begin(), std::numeric_limits<int64_t>::min());
  for (int bit = 0; bit < 63; ++bit) numbers.push_back(int64_t{1} << bit);
  numbers.push_back(std::numeric_limits<int64_t>::max());
  for (size_t i = 1; i < numbers.size(); ++i) EXPECT_LT(of_signed(numbers[i - 1]), of_signed(numbers[i])) << numbers[i];
}

}  // namespace
}  // namespace longhaul
