#include "longhaul/console/text/shown_text.h"

#include <gmock/gmock.h>

namespace longhaul::console {
namespace {

TEST(ShownText, LeavesTextOfAllLanguagesAsItIs) {
  EXPECT_EQ(shown("layers/0/weight"), "layers/0/weight");
  EXPECT_EQ(shown("Gewicht größer, 重み"), "Gewicht größer, 重み");
}

TEST(ShownText, NothingReachesATerminalRaw) {
  EXPECT_EQ(shown("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07");
  EXPECT_EQ(shown("a\nb\rc\td\x7f"), "a\\x0ab\\x0dc\\x09d\\x7f");
  EXPECT_EQ(shown(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "\\u009b31m")
      << "CSI in one character";
  EXPECT_EQ(shown("\xe2\x80\xae"
                  "abc"),
            "\\u202eabc")
      << "right to left";
  EXPECT_EQ(shown("a\xe2\x80\x8b"
                  "b"),
            "a\\u200bb")
      << "no width";
}

TEST(ShownText, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(shown("a\xff"
                  "b"),
            "a\\xffb");
  EXPECT_EQ(shown("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(shown("\xe9"), "\\xe9") << "cut off";
  EXPECT_EQ(shown("\xf8\x88\x80\x80\x80"), "\\xf8\\x88\\x80\\x80\\x80");
}

TEST(ShownText, CutsInTheMiddle) {
  EXPECT_EQ(shown("abcdefghijklmno", 9), "abc...mno");
  EXPECT_EQ(shown("abcdefghi", 9), "abcdefghi");
  EXPECT_EQ(shown("abcdef", 2), "ab");
  EXPECT_LE(columns_of(shown(std::string(10 << 20, 'x'), 40)), 40u);
  EXPECT_LE(columns_of(shown(std::string(10 << 20, '\x1b'), 40)), 40u);
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "重";
  EXPECT_LE(columns_of(shown(wide, 41)), 41u);
  EXPECT_GE(columns_of(shown(wide, 41)), 37u);
}

TEST(ShownText, KeepsTheLineBreaksOfAMessageAndNothingElse) {
  EXPECT_EQ(shown_lines("a\nb\x1b\n"), "a\nb\\x1b\n");
  EXPECT_LT(shown_lines(std::string(10 << 20, 'x')).size(), 30000u);
  EXPECT_LT(shown_lines(std::string(10 << 20, '\n')).size(), 1000u);
}

TEST(ShownText, WrapsAtSpaces) {
  EXPECT_EQ(wrapped("one two three four five", 2, 20), "one two three four\n  five");
  EXPECT_EQ(wrapped("one two", 2, 0), "one two");
  EXPECT_EQ(wrapped("a_word_that_is_longer_than_a_line b", 2, 18), "a_word_that_is_longer_than_a_line\n  b");
}

}  // namespace
}  // namespace longhaul::console
