// Files of input that are small, or have no end, and claim much memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "longhaul/host/parsing/csv.h"
#include "longhaul/host/parsing/sparse_tensor.h"
#include "longhaul/host/readers/reader.h"
#include "longhaul/host/tables/vocabulary_file.h"
#include "longhaul/io/records/record.h"
#include "longhaul/ops/input/reader_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/memory_growth.h"
#include "longhaul/testing/scripted_session.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class HostileInput : public ::testing::Test {
 protected:
  std::string path() const { return directory_.file("input"); }

  // A gzip file of that many records of zeros.
  void write_records(size_t records, size_t bytes) {
    std::string record(kRecordHeaderBytes + bytes + kRecordFooterBytes, '\0');
    frame_record(record.data(), bytes);
    const gzFile file = gzopen(path().c_str(), "wb1");
    for (size_t i = 0; i < records; ++i) gzwrite(file, record.data(), static_cast<unsigned>(record.size()));
    gzclose(file);
  }

  Reader::Records read(Reader& reader, int64_t limit = 1) {
    return reader.read(limit, [&] { return path(); }, FileSystem::real());
  }

  std::string refusal(Reader& reader) {
    try {
      read(reader);
    } catch (const ResourceExhaustedError& error) {
      return error.what();
    }
    return "it was read";
  }

  void expect_growth_below(uint64_t bytes, const std::function<void()>& work) {
    const auto growth = testing::memory_growth(work);
    if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
    EXPECT_LT(*growth, bytes);
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(HostileInput, ACompressedRecordIsNoLargerThanIsSaid) {
  write_records(2, 64 << 20);
  Reader reader("r", tf_records(Compression::kGzip, 1 << 20));
  const std::string expected = path() + ": the record at 0 has 67108864 bytes, more than 1048576 (most_record_bytes)";
  EXPECT_EQ(refusal(reader), expected);
  EXPECT_EQ(refusal(reader), expected) << "the next call says the same";
  expect_growth_below(8 << 20, [&] { read(reader); });
}

TEST_F(HostileInput, ACompressedRecordOf300MegabytesIsRefusedUnlessItIsAskedFor) {
  write_records(1, 300 << 20);
  ASSERT_LT(std::filesystem::file_size(path()), 3u << 20);
  Reader reader("r", tf_records(Compression::kGzip));
  EXPECT_THAT(refusal(reader), HasSubstr("has 314572800 bytes, more than 268435456"));
  Reader large("r", tf_records(Compression::kGzip, 301 << 20));
  EXPECT_EQ(read(large).values.at(0).size(), size_t{300} << 20);
}

TEST_F(HostileInput, RecordsThatAreReadTogetherHaveALimit) {
  write_records(40, 8 << 20);
  Reader reader("r", tf_records(Compression::kGzip));
  EXPECT_EQ(read(reader, 1000).values.size(), Reader::kMostBytesAtOnce / (8 << 20));
  EXPECT_EQ(read(reader, 4).values.size(), 4u) << "and it goes on";
}

TEST_F(HostileInput, ALineThatDoesNotEndIsRefused) {
  write_file_atomically(FileSystem::real(), path(), "one\n");
  std::filesystem::resize_file(path(), uint64_t{1} << 40);  // a terabyte of zeros that takes no room
  Reader reader("r", text_lines(0, 1 << 20));
  EXPECT_EQ(read(reader).values.at(0), "one");
  const std::string expected = path() + ":2: the line is longer than 1048576 bytes (most_line_bytes)";
  EXPECT_EQ(refusal(reader), expected);
  EXPECT_EQ(refusal(reader), expected);
  expect_growth_below(8 << 20, [&] { read(reader); });
}

TEST_F(HostileInput, AHeaderLineThatDoesNotEndIsRefused) {
  write_file_atomically(FileSystem::real(), path(), "");
  std::filesystem::resize_file(path(), uint64_t{1} << 40);
  Reader reader("r", text_lines(1, 1 << 20));
  EXPECT_THAT(refusal(reader), HasSubstr(":1: the line is longer than"));
}

TEST_F(HostileInput, LimitsAreOptionsOfTheOperations) {
  write_file_atomically(FileSystem::real(), path(), "short\nlonger than ten\n");
  Graph graph;
  Scope root(graph);
  FIFOQueue files(root, 10, {kString}, {.shapes = {{}}});
  const Output reader = ops::text_line_reader(root, {.most_line_bytes = 10});
  const Output value = ops::read(root, reader, files).value;
  EXPECT_THROW(ops::tf_record_reader(root, {.most_record_bytes = -1}), InvalidArgumentError);
  EXPECT_EQ(ops::tf_record_reader(root).op().find_attr<int64_t>("most_record_bytes"), nullptr)
      << "TensorFlow does not know it";
  testing::ScriptedSession session(graph);
  session.run(files.enqueue(root, {ops::constant(root, Tensor::scalar(path()))}));
  EXPECT_EQ(session.run(value).item<std::string>(), "short");
  EXPECT_THROW(session.run(value), ResourceExhaustedError);
}

TEST_F(HostileInput, EmptyLinesOfATableTakeNoMemory) {
  write_file_atomically(FileSystem::real(), path(), "word\n" + std::string(8 << 20, '\n'));
  const auto read_table = [&] { read_vocabulary(FileSystem::real(), path(), kString, kInt64, {}); };
  try {
    read_table();
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_EQ(error.what(), path() + ":2: Invalid content: empty line found");
  }
  expect_growth_below(24 << 20, read_table);
}

TEST_F(HostileInput, FieldsOfARecordHaveALimit) {
  CsvSplitter splitter({});
  EXPECT_EQ(splitter.split(std::string(1000, ',')).size(), 1001u);
  const std::string commas(20 << 20, ',');
  EXPECT_THROW(splitter.split(commas), InvalidArgumentError);
  expect_growth_below(48 << 20, [&] { splitter.split(commas); });
}

// A shape of millions of dimensions, each of two bytes.
TEST_F(HostileInput, ASerializedTensorTakesNoMoreThanItIsWorth) {
  std::string dims;
  for (int i = 0; i < 4 * 1000 * 1000; ++i) dims += std::string("\x12\x00", 2);
  const std::string bytes = std::string("\x08\x09\x12\x80\xa4\xe8\x03", 7) + dims;  // int64, 8 million bytes of shape
  const Tensor serialized = Tensor::of<std::string>({1, 3}, {bytes, bytes, bytes});
  EXPECT_THROW(deserialize_many_sparse(serialized, kInt64), InvalidArgumentError);
  expect_growth_below(16 << 20, [&] { deserialize_many_sparse(serialized, kInt64); });
}

}  // namespace
}  // namespace longhaul
