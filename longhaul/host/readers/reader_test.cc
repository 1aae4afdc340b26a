#include "longhaul/host/readers/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

#include "longhaul/io/records/crc32c.h"
#include "longhaul/io/records/record.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

std::string records_of(const Strings& payloads) {
  std::string bytes;
  for (const std::string& payload : payloads) append_record(bytes, payload);
  return bytes;
}

std::string deflated(const std::string& bytes, int window_bits) {
  z_stream zlib{};
  deflateInit2(&zlib, Z_BEST_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 1000, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  deflate(&zlib, Z_FINISH);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

std::string zlib_of(const std::string& bytes) {
  return deflated(bytes, MAX_WBITS);
}
std::string gzip_of(const std::string& bytes) {
  return deflated(bytes, MAX_WBITS + 16);
}

class ReaderTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& contents) {
    write_file_atomically(FileSystem::real(), directory.file(name), contents);
    return directory.file(name);
  }

  // All records of the files, and of the error that ends them the message.
  Strings read_all(const OpenRecords& open, Strings files) {
    Reader reader("reader", open);
    auto next = files.begin();
    const auto next_file = [&] {
      if (next == files.end()) throw OutOfRangeError("no more files");
      return *next++;
    };
    Strings values;
    keys.clear();
    try {
      while (true) {
        const auto records = reader.read(1, next_file, FileSystem::real());
        keys.push_back(records.keys.at(0));
        values.push_back(records.values.at(0));
      }
    } catch (const Error& error) {
      code = error.code();
      message = error.what();
    }
    return values;
  }

  void expect_end() { EXPECT_EQ(message, "no more files"); }

  testing::TemporaryDirectory directory;
  Strings keys;
  std::string message;
  Code code = Code::kOk;
};

TEST_F(ReaderTest, LinesHaveNoEndsAndAreCountedFromOne) {
  const std::string a = write("a", "one\ntwo\r\n\nfour"), b = write("b", "five\n");
  EXPECT_THAT(read_all(text_lines(), {a, b}), ElementsAre("one", "two", "", "four", "five"));
  EXPECT_THAT(keys, ElementsAre(a + ":1", a + ":2", a + ":3", a + ":4", b + ":1"));
  expect_end();
}

TEST_F(ReaderTest, HeaderLinesAreSkippedInEachFileAndCounted) {
  const std::string a = write("a", "h1\nh2\n1\n"), b = write("b", "h1\n"), c = write("c", "h1\nh2\n2");
  EXPECT_THAT(read_all(text_lines(2), {a, b, c}), ElementsAre("1", "2"));
  EXPECT_THAT(keys, ElementsAre(a + ":3", c + ":3"));
}

TEST_F(ReaderTest, ALineMayBeLongerThanWhatIsReadAtOnce) {
  const std::string longest(3 << 18, 'x');
  EXPECT_THAT(read_all(text_lines(), {write("a", "a\n" + longest + "\r\nb")}), ElementsAre("a", longest, "b"));
}

TEST_F(ReaderTest, RecordsHaveTheirOffsetsAsKeys) {
  const std::string a = write("a", records_of({"first", "", "third"}));
  EXPECT_THAT(read_all(tf_records(), {a}), ElementsAre("first", "", "third"));
  EXPECT_THAT(keys, ElementsAre(a + ":0", a + ":21", a + ":37"));
  expect_end();
}

TEST_F(ReaderTest, CompressedRecordsAreThoseBeforeCompression) {  // TR-3
  const std::string bytes = records_of({"first", "", std::string(3 << 20, 'x')});
  const std::string zlib = write("zlib", zlib_of(bytes)), gzip = write("gzip", gzip_of(bytes));
  EXPECT_THAT(read_all(tf_records(compression_of("ZLIB")), {zlib}),
              ElementsAre("first", "", std::string(3 << 20, 'x')));
  EXPECT_THAT(keys, ElementsAre(zlib + ":0", zlib + ":21", zlib + ":37"));
  expect_end();
  EXPECT_EQ(read_all(tf_records(compression_of("GZIP")), {gzip}).size(), 3u);
  expect_end();
  EXPECT_THROW(compression_of("LZ4"), InvalidArgumentError);
}

TEST_F(ReaderTest, GzipMembersFollowEachOtherAndZlibStreamsDoNot) {
  const std::string one = records_of({"one"}), two = records_of({"two"});
  EXPECT_THAT(read_all(tf_records(Compression::kGzip), {write("gzip", gzip_of(one) + gzip_of(two))}),
              ElementsAre("one", "two"));
  expect_end();
  EXPECT_THAT(read_all(tf_records(Compression::kZlib), {write("zlib", zlib_of(one) + zlib_of(two))}),
              ElementsAre("one"));
  EXPECT_THAT(message, HasSubstr("it has data after its compressed stream"));
}

TEST_F(ReaderTest, EveryTruncatedRecordFileGivesItsWholeRecordsAndThenDataLoss) {  // TR-3
  const std::string bytes = records_of({"first", "second"});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string a = write("a", bytes.substr(0, size));
    EXPECT_EQ(read_all(tf_records(), {a}).size(), size < 21 ? 0u : 1u) << size;
    if (size == 0 || size == 21) {
      expect_end();
    } else {
      EXPECT_EQ(code, Code::kDataLoss);
      EXPECT_EQ(message, fmt::format("{}: truncated record at {}", a, size < 21 ? 0 : 21));
    }
  }
}

TEST_F(ReaderTest, EveryTruncatedCompressedFileIsDataLossWithTheFile) {
  for (const Compression compression : {Compression::kZlib, Compression::kGzip}) {
    const std::string bytes = records_of({"first", "second"});
    const std::string whole = compression == Compression::kZlib ? zlib_of(bytes) : gzip_of(bytes);
    for (size_t size = 1; size < whole.size(); ++size) {
      const std::string a = write("a", whole.substr(0, size));
      EXPECT_LE(read_all(tf_records(compression), {a}).size(), 2u);
      EXPECT_EQ(code, Code::kDataLoss) << size << " " << message;
      EXPECT_THAT(message, HasSubstr(a + ": "));
      EXPECT_THAT(message, HasSubstr("record at"));
    }
  }
}

TEST_F(ReaderTest, AnyFlippedBitOfARecordFileIsNoticed) {  // TR-3
  const std::string bytes = records_of({"first", "second"});
  for (const Compression compression : {Compression::kNone, Compression::kZlib}) {
    for (size_t bit = 0; bit < 8 * 21; bit += 3) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const std::string a = write("a", compression == Compression::kNone ? damaged : zlib_of(damaged));
      EXPECT_TRUE(read_all(tf_records(compression), {a}).empty()) << bit;
      EXPECT_EQ(code, Code::kDataLoss);
      EXPECT_THAT(message, HasSubstr(a + ": corrupted record at 0"));
    }
  }
}

TEST_F(ReaderTest, AnAbsurdRecordLengthTakesNoMemory) {
  const uint64_t length = uint64_t{1} << 60;
  std::string absurd(kRecordHeaderBytes, '\0');
  std::memcpy(absurd.data(), &length, sizeof length);
  const uint32_t crc = mask_crc32c(crc32c(absurd.substr(0, sizeof length)));
  std::memcpy(absurd.data() + sizeof length, &crc, sizeof crc);
  absurd += "rest";
  EXPECT_TRUE(read_all(tf_records(), {write("a", absurd)}).empty());
  EXPECT_THAT(message, HasSubstr("truncated record at 0"));
  EXPECT_TRUE(read_all(tf_records(Compression::kZlib), {write("b", zlib_of(absurd))}).empty());
  EXPECT_THAT(message, HasSubstr("truncated record at 0"));
}

TEST_F(ReaderTest, FixedLengthRecordsLieBetweenHeaderAndFooter) {
  const std::string a = write("a", "HHaabbccF"), empty = write("b", "HHF");
  EXPECT_THAT(read_all(fixed_length_records({.record_bytes = 2, .header_bytes = 2, .footer_bytes = 1}), {a, empty}),
              ElementsAre("aa", "bb", "cc"));
  EXPECT_THAT(keys, ElementsAre(a + ":0", a + ":1", a + ":2"));
  expect_end();
}

TEST_F(ReaderTest, FixedLengthRecordsMayOverlapOrLeaveGaps) {
  const std::string a = write("a", "abcdef");
  EXPECT_THAT(read_all(fixed_length_records({.record_bytes = 3, .hop_bytes = 2}), {a}), ElementsAre("abc", "cde"));
  EXPECT_THAT(read_all(fixed_length_records({.record_bytes = 1, .hop_bytes = 4}), {a}), ElementsAre("a", "e"));
  expect_end();
}

TEST_F(ReaderTest, AFixedLengthRecordThatIsNotWholeIsDataLoss) {
  const std::string a = write("a", "Haabb");
  const int64_t absurd = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(read_all(fixed_length_records({.record_bytes = 3, .header_bytes = 1}), {a}), ElementsAre("aab"));
  EXPECT_EQ(message, a + ": truncated record at 4: 1 bytes, want 3");
  EXPECT_EQ(code, Code::kDataLoss);
  EXPECT_TRUE(read_all(fixed_length_records({.record_bytes = absurd}), {a}).empty());
  EXPECT_THAT(message, HasSubstr("truncated record at 0"));
  EXPECT_TRUE(read_all(fixed_length_records({.header_bytes = absurd, .footer_bytes = absurd}), {a}).empty());
  EXPECT_THAT(message, HasSubstr("the file has 5 bytes, too few for a header of"));
}

TEST_F(ReaderTest, AWholeFileIsARecordAndANameCanBeOne) {
  const std::string a = write("a", "all\nof it"), b = write("b", "");
  EXPECT_THAT(read_all(whole_files(), {a, b}), ElementsAre("all\nof it", ""));
  EXPECT_THAT(keys, ElementsAre(a, b));
  EXPECT_THAT(read_all(names_alone(), {"x", "y"}), ElementsAre("x", "y"));
  EXPECT_THAT(keys, ElementsAre("x", "y"));
}

// What TensorFlow 1.15.5 gives for such files.
TEST_F(ReaderTest, ReadUpToEndsWithEachFile) {
  const std::string five = "0\n1\n2\n3\n4\n", records = records_of({"0", "1", "2", "3", "4"});
  const auto batches = [](const OpenRecords& open, const Strings& files, int64_t limit) {
    Reader reader("reader", open);
    size_t next = 0;
    const auto next_file = [&] {
      if (next == files.size()) throw OutOfRangeError("no more files");
      return files[next++];
    };
    std::string text;  // of each call, how many records, and how many files had been read to their end
    try {
      while (true) {
        const size_t count = reader.read(limit, next_file, FileSystem::real()).values.size();
        text += fmt::format("{}/{} ", count, reader.num_work_units_completed());
      }
    } catch (const OutOfRangeError&) {
      return text + fmt::format("end/{}", reader.num_work_units_completed());
    }
  };
  const std::string a = write("a", five), b = write("b", five), none = write("c", "");
  EXPECT_EQ(batches(text_lines(), {a, b}, 4), "4/0 1/1 4/1 1/2 end/2");
  EXPECT_EQ(batches(text_lines(), {a, b}, 5), "5/0 5/1 end/2");
  EXPECT_EQ(batches(text_lines(), {none, a, none, b}, 4), "4/1 1/2 4/3 1/4 end/4");
  EXPECT_EQ(batches(tf_records(), {write("d", records), write("e", records)}, 4), "4/0 1/1 4/1 1/2 end/2");
  EXPECT_EQ(batches(fixed_length_records({.record_bytes = 2}), {a, b}, 4), "4/0 1/1 4/1 1/2 end/2");
  EXPECT_EQ(batches(whole_files(), {a, none, b}, 2), "1/1 1/2 1/3 end/3");
  EXPECT_EQ(batches(names_alone(), {a, b}, 2), "1/1 1/2 end/2");
}

TEST_F(ReaderTest, ReadUpToLeavesTheRestAndErrorsToTheNextCall) {
  Reader reader("reader", text_lines());
  Strings files{write("a", "1\n2\n3\n"), write("b", "4\n")};
  size_t next = 0;
  const auto next_file = [&] {
    if (next == files.size()) throw OutOfRangeError("no more files");
    return files[next++];
  };
  EXPECT_THAT(reader.read(2, next_file, FileSystem::real()).values, ElementsAre("1", "2"));
  EXPECT_EQ(reader.num_work_units_completed(), 0);
  EXPECT_THAT(reader.read(int64_t{1} << 60, next_file, FileSystem::real()).values, ElementsAre("3"));
  EXPECT_THAT(reader.read(2, next_file, FileSystem::real()).values, ElementsAre("4"));
  EXPECT_THROW(reader.read(2, next_file, FileSystem::real()), OutOfRangeError);
  EXPECT_THROW(reader.read(0, next_file, FileSystem::real()), InvalidArgumentError);
  EXPECT_EQ(reader.num_records_produced(), 4);
  EXPECT_EQ(reader.num_work_units_completed(), 2);
}

TEST_F(ReaderTest, ItsStateBringsItBackIntoTheMiddleOfAFile) {
  const std::string bytes = records_of({"1", "2", "3"});
  const std::vector<std::pair<OpenRecords, std::string>> cases{
      {text_lines(1), write("a", "0\n1\n2\n3\n")},
      {tf_records(), write("b", bytes)},
      {tf_records(Compression::kGzip), write("c", gzip_of(bytes))},
      {fixed_length_records({.record_bytes = 1, .header_bytes = 1, .hop_bytes = 2}), write("d", "H1-2-3")}};
  for (const auto& [open, path] : cases) {
    Reader reader("reader", open);
    const auto next_file = [&path = path] { return path; };
    EXPECT_THAT(reader.read(1, next_file, FileSystem::real()).values, ElementsAre("1"));
    const std::string state = reader.serialize_state();
    const auto rest = reader.read(2, next_file, FileSystem::real());
    EXPECT_THAT(rest.values, ElementsAre("2", "3"));
    Reader other("other", open);
    other.restore_state(state);
    EXPECT_EQ(other.num_records_produced(), 1);
    EXPECT_EQ(other.serialize_state(), state);
    const auto again = other.read(2, next_file, FileSystem::real());
    EXPECT_EQ(again.values, rest.values);
    EXPECT_EQ(again.keys, rest.keys);
    other.reset();
    EXPECT_EQ(other.num_records_produced(), 0);
    EXPECT_THAT(other.read(1, next_file, FileSystem::real()).values, ElementsAre("1"));
  }
}

TEST_F(ReaderTest, BytesThatAreNoStateAreRefusedAndChangeNothing) {
  Reader reader("reader", names_alone());
  reader.read(2, [] { return "x"; }, FileSystem::real());
  const std::string state = reader.serialize_state();
  proto::ReaderBaseState wrong;
  wrong.set_work_started(3);
  for (const std::string& bytes : {std::string("\xff\xff"), wrong.SerializeAsString(), state.substr(1)}) {
    try {
      reader.restore_state(bytes);
      ADD_FAILURE() << bytes.size();
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("Could not parse state for reader"));
    }
  }
  EXPECT_EQ(reader.serialize_state(), state);
}

TEST_F(ReaderTest, ThreadsShareTheRecordsWithoutLosingOrRepeatingAny) {
  Reader reader("reader", text_lines());
  std::string contents;
  for (int i = 0; i < 1000; ++i) contents += std::to_string(i) + "\n";
  const Strings files{write("a", contents), write("b", contents)};
  std::atomic<size_t> next = 0;
  const auto next_file = [&] {
    const size_t i = next++;
    if (i >= files.size()) throw OutOfRangeError("no more files");
    return files[i];
  };
  Mutex mutex;
  Strings seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        while (true) {
          const auto records = reader.read(7, next_file, FileSystem::real());
          MutexLock lock(mutex);
          seen.insert(seen.end(), records.keys.begin(), records.keys.end());
        }
      } catch (const OutOfRangeError&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen.size(), 2000u);
  EXPECT_TRUE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  EXPECT_EQ(reader.num_records_produced(), 2000);
}

TEST_F(ReaderTest, WhoWaitsForItsTurnStopsWithItsSessionOrItsTime) {
  Reader reader("reader", names_alone());
  Cancellation cancellation;
  const WaitLimits late{.deadline = Seconds{1e-9}}, cancelled{.cancellation = &cancellation};
  const auto next_file = [&]() -> std::string {
    EXPECT_EQ(reader.num_records_produced(), 0);
    EXPECT_THROW(reader.reset(late), DeadlineExceededError);
    std::thread closer([&] { cancellation.cancel("Session::Close"); });
    EXPECT_THROW(reader.serialize_state(cancelled), CancelledError);
    closer.join();
    return "x";
  };
  EXPECT_THAT(reader.read(1, next_file, FileSystem::real()).values, ElementsAre("x"));
}

}  // namespace
}  // namespace longhaul
