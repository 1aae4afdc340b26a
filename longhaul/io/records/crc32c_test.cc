#include "longhaul/io/records/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace longhaul {
namespace {

std::string counting(int from, int step) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes += static_cast<char>(from + step * i);
  return bytes;
}

TEST(Crc32c, TheVectorsOfRfc3720) {  // TR-2
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(counting(0, 1)), 0x46dd794eu);
  EXPECT_EQ(crc32c(counting(31, -1)), 0x113fdb5cu);
  const unsigned char command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                     0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                     0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
  EXPECT_EQ(crc32c({reinterpret_cast<const char*>(command), sizeof(command)}), 0xd9963a56u);
}

TEST(Crc32c, NothingHasCrcZero) {
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, ExtendingGivesTheCrcOfTheWhole) {
  std::string data = "hello world, this is longer than one block of sixteen";
  for (size_t cut = 0; cut <= data.size(); ++cut)
    EXPECT_EQ(extend_crc32c(crc32c(data.substr(0, cut)), data.substr(cut)), crc32c(data));
}

TEST(Crc32c, CombiningTwoGivesTheCrcOfTheWhole) {
  const std::string data(70001, 'x');
  for (const size_t cut : {0, 1, 7, 4096, 65536, 70000, 70001}) {
    const std::string_view a = std::string_view(data).substr(0, cut), b = std::string_view(data).substr(cut);
    EXPECT_EQ(combine_crc32c(crc32c(a), crc32c(b), b.size()), crc32c(data)) << cut;
  }
}

TEST(Crc32c, MaskingIsUndoneByUnmasking) {  // TR-2
  EXPECT_EQ(mask_crc32c(0), 0xa282ead8u);
  for (uint32_t crc : {0u, 1u, 0x8a9136aau, 0xffffffffu}) {
    EXPECT_NE(mask_crc32c(crc), crc);
    EXPECT_EQ(unmask_crc32c(mask_crc32c(crc)), crc);
  }
}

}  // namespace
}  // namespace longhaul
