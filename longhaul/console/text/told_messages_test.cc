#include "longhaul/console/text/told_messages.h"

#include <gtest/gtest.h>

namespace longhaul::console {
namespace {

TEST(ToldMessages, EachIsNewOnce) {
  ToldMessages told;
  EXPECT_TRUE(told.is_new("a"));
  EXPECT_TRUE(told.is_new("b"));
  EXPECT_FALSE(told.is_new("a"));
  EXPECT_FALSE(told.is_new("b"));
}

TEST(ToldMessages, OfTooManyNotAllAreKept) {
  ToldMessages told;
  for (size_t i = 0; i < ToldMessages::kMostKept; ++i) EXPECT_TRUE(told.is_new(std::to_string(i)));
  EXPECT_FALSE(told.is_new("0"));
  EXPECT_TRUE(told.is_new("one more"));
  EXPECT_TRUE(told.is_new("0"));
  EXPECT_FALSE(told.is_new("one more"));
}

}  // namespace
}  // namespace longhaul::console
