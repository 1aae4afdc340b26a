#include "longhaul/checkpoint/table/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "longhaul/base/error.h"
#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using Entries = std::map<std::string, std::string>;

class StringFile : public WritableFile {
 public:
  void append(std::string_view data) override { bytes += data; }
  void flush() override {}
  void sync() override {}
  void close() override {}
  std::string bytes;
};

std::string table_of(const Entries& entries) {
  StringFile file;
  TableWriter writer(file);
  for (const auto& [key, value] : entries) writer.add(key, value);
  writer.finish();
  return file.bytes;
}

Table open(std::string bytes) {
  return Table(testing::file_in_memory(std::move(bytes)), "t.index");
}

Entries read_all(std::string bytes) {
  Entries entries;
  const Table table = open(std::move(bytes));
  for (auto cursor = table.seek(""); cursor.valid(); cursor.next()) entries[cursor.key()] = cursor.value();
  return entries;
}

std::string damage_in(std::string bytes) {
  return error_of<DataLossError>([&] { read_all(std::move(bytes)); });
}

Entries many_entries() {
  Entries entries;
  for (int i = 0; i < 20000; ++i)
    entries[fmt::format("layer_{:05}/weights", i)] = std::string(40, static_cast<char>(i));
  return entries;
}

TEST(Table, ReadsAGenuineIndex) {  // CB-10, CB-12
  const Entries entries = read_all(testing::counter_bundle().index);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.at(""), testing::from_hex("08011a020801"));
  EXPECT_EQ(entries.at("counter"), testing::from_hex("08011200280435a67b113a"));
}

TEST(Table, ReadsAGenuineSnappyBlock) {  // CB-13
  const Entries entries = read_all(testing::snappy_bundle().index);
  ASSERT_EQ(entries.size(), 6u);
  EXPECT_EQ(entries.at("a"), testing::from_hex("08011200280435"
                                               "0638271f"));
}

TEST(Table, WritesTheBytesThatTensorFlowWrites) {  // CB-12, CB-14, CB-16
  const std::string genuine = testing::empty_bundle().index;
  EXPECT_EQ(table_of({{"", testing::from_hex("08011a020801")}}), genuine);
  EXPECT_EQ(table_of(read_all(testing::counter_bundle().index)).size(), testing::counter_bundle().index.size());
}

TEST(Table, GivesBackWhatWasWritten) {  // CB-12
  const Entries entries = many_entries();
  const std::string bytes = table_of(entries);
  EXPECT_GT(bytes.size(), 3 * 262144u);
  EXPECT_EQ(read_all(bytes), entries);
  EXPECT_EQ(read_all(table_of({})), Entries());
}

TEST(Table, SeeksTheFirstKeyThatIsNotLess) {
  const Entries entries = many_entries();
  const Table table = open(table_of(entries));
  for (const char* key :
       {"", "layer_00000/weights", "layer_07777/weights", "layer_07777/weightt", "layer_19999/weights"}) {
    const auto cursor = table.seek(key);
    ASSERT_TRUE(cursor.valid());
    EXPECT_EQ(cursor.key(), entries.lower_bound(key)->first);
    EXPECT_EQ(cursor.value(), entries.lower_bound(key)->second);
  }
  EXPECT_FALSE(table.seek("m").valid());
}

TEST(TableWriter, RefusesKeysOutOfOrder) {  // CB-17
  StringFile file;
  TableWriter writer(file);
  writer.add("b", "");
  EXPECT_THROW(writer.add("b", ""), InternalError);
  EXPECT_THROW(writer.add("a", ""), InternalError);
}

TEST(TableWriter, PassesOnTheErrorOfItsFile) {
  class FullFile : public StringFile {
    void append(std::string_view) override { throw ResourceExhaustedError("disk full"); }
  } file;
  TableWriter writer(file);
  writer.add("a", "1");
  EXPECT_THROW(writer.finish(), ResourceExhaustedError);
}

TEST(Table, NoPrefixOfAFileIsATable) {
  for (const auto& bytes : {testing::counter_bundle().index, testing::snappy_bundle().index}) {
    for (size_t size = 0; size < bytes.size(); ++size) EXPECT_NE(damage_in(bytes.substr(0, size)), "") << size;
  }
}

TEST(Table, AFlippedByteIsDetectedOrHarmless) {
  for (const auto& bytes : {testing::counter_bundle().index, testing::snappy_bundle().index}) {
    const Entries entries = read_all(bytes);
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
      EXPECT_TRUE(!damage_in(damaged).empty() || read_all(damaged) == entries) << i;
    }
  }
}

TEST(Table, ErrorsNameTheFileThePlaceAndBothValues) {  // CB-11, CB-16
  std::string bytes = testing::counter_bundle().index;
  bytes[3] = 'x';
  EXPECT_THAT(damage_in(bytes), HasSubstr("t.index: block at 0: block checksum mismatch: crc 0x"));
  EXPECT_THAT(damage_in(bytes), HasSubstr(", want 0x"));
  EXPECT_THAT(damage_in("short"), HasSubstr("t.index: file is too short to be an sstable"));
  bytes.back() = 'x';
  EXPECT_THAT(damage_in(bytes), HasSubstr("not an sstable (bad magic number)"));
}

TEST(Table, DoesNotBelieveAHandle) {  // CB-11
  std::string footer = testing::from_hex("000800ffffffffff7f");
  footer.resize(40);
  wire::append(footer, uint64_t{0xdb4775248b80fb57});
  EXPECT_THAT(damage_in(std::string(100, 'x') + footer), HasSubstr("truncated block read"));
}

TEST(Table, DoesNotBelieveASnappyLength) {
  std::string snappy;
  append_varint(snappy, uint64_t{1} << 31);
  EXPECT_THAT(damage_in(testing::table_with_block(snappy + "xx", 1)), HasSubstr("claim to hold 2147483648"));
  EXPECT_THAT(damage_in(testing::table_with_block(std::string("\x08\xff\xff\xff", 4), 1)),
              HasSubstr("damaged Snappy data"));
}

TEST(Table, DoesNotBelieveAnEntry) {
  const auto block = [](const char* hex) { return testing::from_hex(hex) + testing::from_hex("0000000001000000"); };
  EXPECT_EQ(damage_in(testing::table_with_block(block("000101"
                                                      "6178"),
                                                0)),
            "");
  EXPECT_THAT(damage_in(testing::table_with_block(block("000901"
                                                        "6178"),
                                                  0)),
              HasSubstr("an entry of 0+9+1 bytes"));
  EXPECT_THAT(damage_in(testing::table_with_block(block("010101"
                                                        "6178"),
                                                  0)),
              HasSubstr("an entry of 1+1+1 bytes"));
  EXPECT_THAT(damage_in(testing::table_with_block(block("0001ffffffff0f"
                                                        "6178"),
                                                  0)),
              HasSubstr("an entry of"));
  EXPECT_THAT(damage_in(testing::table_with_block(block("0001ff"), 0)), HasSubstr("no valid entry at"));
  EXPECT_THAT(damage_in(testing::table_with_block(block("0001016278"
                                                        "0001016178"),
                                                  0)),
              HasSubstr("not in order"));
  EXPECT_THAT(damage_in(testing::table_with_block(testing::from_hex("ffffffff"), 0)), HasSubstr("restarts in a block"));
  EXPECT_THAT(damage_in(testing::table_with_block(block("0001016178"), 7)), HasSubstr("unknown compression 7"));
}

}  // namespace
}  // namespace longhaul
