#include "longhaul/base/excerpt.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(Excerpt, IsTheTextItselfWhereThatIsShortAndPlain) {
  EXPECT_EQ(excerpt("model.ckpt-1 \xc3\xa4"), "model.ckpt-1 \xc3\xa4");
}

TEST(Excerpt, HasNoControlCharacters) {
  EXPECT_EQ(excerpt(std::string_view("a\nb\0\x1b[31m\x7f", 10)), "a\\x0ab\\x00\\x1b[31m\\x7f");
}

TEST(Excerpt, IsCut) {
  EXPECT_EQ(excerpt(std::string(1000, 'a'), 5), "aaaaa... (1000 bytes)");
  EXPECT_EQ(excerpt("aaaaa", 5), "aaaaa");
}

}  // namespace
}  // namespace longhaul
