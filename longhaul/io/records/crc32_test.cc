#include "longhaul/io/records/crc32.h"

#include <gtest/gtest.h>

#include <string>

namespace longhaul {
namespace {

TEST(Crc32, OfTheNineDigitsIsTheCheckValueOfZip) {  // RFC 1952, and the catalogue of CRC algorithms: CRC-32/ISO-HDLC
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(crc32(""), 0u);
}

TEST(Crc32, OfPartsIsThatOfTheWhole) {
  const std::string text = "an archive is checked entry by entry";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(extend_crc32(crc32(text.substr(0, cut)), text.substr(cut)), crc32(text));
  }
}

}  // namespace
}  // namespace longhaul
