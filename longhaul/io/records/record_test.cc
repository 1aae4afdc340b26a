#include "longhaul/io/records/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

using Result = RecordReader::Result;

// A file in memory, which may grow.
class StringFile : public ReadableFile {
 public:
  uint64_t size() const override { return bytes.size(); }
  size_t read(uint64_t offset, char* out, size_t count) const override {
    if (fail_next) {
      fail_next = false;
      throw UnavailableError("made to fail");
    }
    largest_read = std::max(largest_read, count);
    size_t got = offset < bytes.size() ? std::min<size_t>(count, bytes.size() - offset) : 0;
    std::memcpy(out, bytes.data() + offset, got);
    return got;
  }
  std::string bytes;
  mutable size_t largest_read = 0;
  mutable bool fail_next = false;
};

// The first record of an event file that TensorFlow wrote.
const unsigned char kGenuine[] = {0x18, 0,    0,    0,    0,    0,    0,    0,    0xa3, 0x7f, 0x4b, 0x22, 0x09, 0xd3,
                                  0xa0, 0x0b, 0x2c, 0x00, 0x45, 0xd7, 0x41, 0x1a, 0x0d, 'b',  'r',  'a',  'i',  'n',
                                  '.',  'E',  'v',  'e',  'n',  't',  ':',  '2',  0xaa, 0x3f, 0xbb, 0xda};
const std::string kGenuineBytes(reinterpret_cast<const char*>(kGenuine), sizeof(kGenuine));

class Records : public ::testing::Test {
 protected:
  Result next() { return reader_.next(payload_); }
  void expect_record(const std::string& payload) {
    ASSERT_EQ(next(), Result::kRecord);
    EXPECT_EQ(payload_, payload);
  }

  StringFile file_;
  RecordReader reader_{file_, "the-file"};
  std::string_view payload_;
};

TEST_F(Records, RoundTrip) {
  std::vector<std::string> payloads = {"", "a", std::string(300'000, 'x'), std::string(1, '\0'), "end"};
  for (const auto& payload : payloads) append_record(file_.bytes, payload);
  for (const auto& payload : payloads) expect_record(payload);
  EXPECT_EQ(next(), Result::kEnd);
  EXPECT_EQ(reader_.offset(), file_.bytes.size());
}

TEST_F(Records, AfterAReadThatFailedTheNextCallReadsAgain) {
  for (const char* payload : {"one", "two"}) append_record(file_.bytes, payload);
  const std::string large(300'000, 'x');
  append_record(file_.bytes, large);
  file_.fail_next = true;
  EXPECT_THROW(next(), UnavailableError);
  expect_record("one");
  expect_record("two");
  file_.fail_next = true;
  EXPECT_THROW(next(), UnavailableError) << "it goes beyond what was read before";
  expect_record(large);
  EXPECT_EQ(next(), Result::kEnd);
}

TEST_F(Records, AGenuineRecordIsReadAndWrittenTheSame) {  // TR-1, TR-2
  file_.bytes = kGenuineBytes;
  ASSERT_EQ(next(), Result::kRecord);
  EXPECT_EQ(payload_.substr(11), "brain.Event:2");
  std::string written;
  append_record(written, payload_);
  EXPECT_EQ(written, kGenuineBytes);
}

TEST_F(Records, ATruncatedTailIsNotAnError) {  // unlike TR-3
  std::string whole;
  append_record(whole, "first");
  size_t first = whole.size();
  append_record(whole, "second");
  for (size_t size = 0; size < whole.size(); ++size) {
    StringFile file;
    file.bytes = whole.substr(0, size);
    RecordReader reader(file, "f");
    if (size >= first) {
      EXPECT_EQ(reader.next(payload_), Result::kRecord);
    }
    EXPECT_EQ(reader.next(payload_), size == 0 || size == first ? Result::kEnd : Result::kTruncated) << size;
  }
}

TEST_F(Records, AReaderFollowsAFileThatGrows) {
  std::string whole;
  append_record(whole, "payload");
  for (char byte : whole) {
    EXPECT_NE(next(), Result::kRecord);
    file_.bytes += byte;
  }
  expect_record("payload");
  EXPECT_EQ(next(), Result::kEnd);
}

TEST_F(Records, EveryFlippedBitIsFound) {  // TR-3
  for (size_t bit = 0; bit < kGenuineBytes.size() * 8; ++bit) {
    StringFile file;
    file.bytes = kGenuineBytes;
    file.bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    RecordReader reader(file, "f");
    EXPECT_THROW(reader.next(payload_), DataLossError) << bit;
  }
}

TEST_F(Records, AnErrorNamesTheFileAndTheOffset) {  // TR-3
  append_record(file_.bytes, "good");
  file_.bytes += kGenuineBytes;
  file_.bytes.back() ^= 1;
  expect_record("good");
  try {
    next();
    FAIL() << "no error";
  } catch (const DataLossError& error) {
    EXPECT_EQ(std::string(error.what()), "the-file: corrupted record at 20: data crc 0xdbbb3faa, want 0xdabb3faa");
  }
  EXPECT_EQ(reader_.offset(), 20u);
}

TEST_F(Records, ALengthBeyondTheFileIsNotBelieved) {
  for (uint64_t length : {uint64_t{100}, uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 4, UINT64_MAX - 16}) {
    StringFile file;
    file.bytes.assign(reinterpret_cast<const char*>(&length), sizeof(length));
    uint32_t crc = mask_crc32c(crc32c(file.bytes));
    file.bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc)).append("some bytes");
    RecordReader reader(file, "f");
    EXPECT_EQ(reader.next(payload_), Result::kTruncated);
    EXPECT_LE(file.largest_read, size_t{1} << 20);
  }
}

}  // namespace
}  // namespace longhaul
