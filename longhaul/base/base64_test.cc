#include "longhaul/base/base64.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(Base64, TheExamplesOfItsStandard) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("Zm9vYg=="), "foob");
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64("/+8A"), std::string("\xff\xef\0", 3));
}

TEST(Base64, WhatIsNoneOfItEndsIt) {
  EXPECT_EQ(decode_base64("Zm9v Zm9v"), "foo");
  EXPECT_EQ(decode_base64("\xc3\xa4Zm9v"), "");
}

}  // namespace
}  // namespace longhaul
