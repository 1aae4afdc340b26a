#include "longhaul/io/records/crc64.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(Crc64, OfTheNineDigitsIsTheCheckValueOfXz) {  // xz-file-format.txt and the catalogue of CRC algorithms: CRC-64/XZ
  EXPECT_EQ(crc64("123456789"), 0x995dc9bbdf1939fau);
  EXPECT_EQ(crc64(""), 0u);
}

TEST(Crc64, OfPartsIsThatOfTheWhole) {
  const std::string text = "a digest of weights is made variable by variable";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(extend_crc64(crc64(text.substr(0, cut)), text.substr(cut)), crc64(text));
  }
}

}  // namespace
}  // namespace longhaul
