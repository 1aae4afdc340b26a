#include "longhaul/io/records/deflate.h"

#include <gmock/gmock.h>

#include "longhaul/io/records/record.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using Format = InflateStream::Format;

// Bytes that compress to about a half.
std::string example(size_t count) {
  std::string bytes(count, 'x');
  uint32_t random = 1;
  for (char& byte : bytes) byte = static_cast<char>('a' + ((random = random * 1664525 + 1013904223) >> 28));
  return bytes;
}

class DeflateTest : public ::testing::TestWithParam<Format> {
 protected:
  std::string inflated() const {
    const auto file = FileSystem::real().open(path_);
    InflateStream stream(*file, path_, GetParam());
    std::string text, part(1000, '\0');
    while (const size_t count = stream.read(part.data(), part.size())) text.append(part, 0, count);
    return text;
  }
  // What can be had of a stream that goes on.
  std::string inflated_so_far() const {
    const auto file = FileSystem::real().open(path_);
    InflateStream stream(*file, path_, GetParam());
    std::string text;
    try {
      for (char byte; stream.read(&byte, 1) == 1;) text += byte;
    } catch (const DataLossError&) {
    }
    return text;
  }
  uint64_t size() const { return FileSystem::real().open(path_)->size(); }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("f");
};

TEST_P(DeflateTest, WhatIsAppendedComesBack) {
  const std::string wanted = example(1'000'000);
  for (const int level : {-1, 0, 1, 9}) {
    {
      DeflatedFile file(FileSystem::real().create(path_), GetParam(), level);
      file.append(wanted.substr(0, 7));
      file.append("");
      file.append(wanted.substr(7));
      file.close();
    }
    EXPECT_TRUE(inflated() == wanted) << level;
    EXPECT_EQ(size() < wanted.size(), level != 0) << level;
  }
}

TEST_P(DeflateTest, NothingIsAWholeStreamToo) {
  {
    DeflatedFile(FileSystem::real().create(path_), GetParam()).close();
  }
  EXPECT_GT(size(), 0u);
  EXPECT_EQ(inflated(), "");
}

TEST_P(DeflateTest, WhatIsFlushedCanBeRead) {
  DeflatedFile file(FileSystem::real().create(path_), GetParam());
  file.append("abc");
  EXPECT_EQ(inflated_so_far(), "");
  file.flush();
  EXPECT_EQ(inflated_so_far(), "abc");
  file.append("def");
  file.sync();
  EXPECT_EQ(inflated_so_far(), "abcdef");
}

TEST_P(DeflateTest, TheDestructorCloses) {
  {
    DeflatedFile(FileSystem::real().create(path_), GetParam()).append("abc");
  }
  EXPECT_EQ(inflated(), "abc");
}

TEST_P(DeflateTest, AfterCloseAndAfterAnErrorNothingMoreIsWritten) {
  DeflatedFile file(FileSystem::real().create(path_), GetParam());
  file.close();
  EXPECT_THROW(file.append("abc"), FailedPreconditionError);
  EXPECT_NO_THROW(file.close()) << "as of a plain file";

  testing::FaultyFileSystem files;
  DeflatedFile faulty(files.create(directory_.file("g")), GetParam(), 0);
  files.fail_operation(0);
  EXPECT_THROW(faulty.append(std::string(1'000'000, 'x')), Error);
  EXPECT_THROW(faulty.append("abc"), FailedPreconditionError);
}

// A file of the program's own, of which one operation throws what is no Error.
class OwnFile : public WritableFile {
 public:
  OwnFile(std::string bad, std::string& written) : bad_(std::move(bad)), written_(written) {}
  void append(std::string_view data) override { written_ += data; }
  void flush() override { fail_if("flush"); }
  void sync() override { fail_if("sync"); }
  void close() override { fail_if("close"); }

 private:
  void fail_if(const std::string& operation) const {
    if (operation == bad_) throw 7;
  }
  const std::string bad_;
  std::string& written_;
};

TEST_P(DeflateTest, AfterAFlushThatFailedNothingMoreIsWritten) {
  for (const char* bad : {"flush", "sync"}) {
    std::string written;
    DeflatedFile file(std::make_unique<OwnFile>(bad, written), GetParam());
    file.append("abc");
    EXPECT_THROW(file.sync(), int);
    const std::string before = written;
    EXPECT_THROW(file.append("def"), FailedPreconditionError);
    EXPECT_THROW(file.close(), FailedPreconditionError);
    EXPECT_EQ(written, before) << bad;
  }
}

TEST_P(DeflateTest, TheDestructorReportsNothingWhateverIsThrown) {
  std::string written;
  {
    DeflatedFile(std::make_unique<OwnFile>("close", written), GetParam()).append("abc");
  }
  EXPECT_FALSE(written.empty());
}

TEST_P(DeflateTest, RecordsComeBack) {
  {
    DeflatedFile file(FileSystem::real().create(path_), GetParam());
    RecordWriter records(file);
    for (int i = 0; i < 100; ++i) records.write(example(static_cast<size_t>(i) * 100));
    file.close();
  }
  std::string wanted;
  for (int i = 0; i < 100; ++i) append_record(wanted, example(static_cast<size_t>(i) * 100));
  EXPECT_TRUE(inflated() == wanted);
}

TEST(Deflate, ALevelThatIsNoneIsRefused) {
  const testing::TemporaryDirectory directory;
  for (const int level : {-2, 10})
    EXPECT_THROW(DeflatedFile(FileSystem::real().create(directory.file("f")), Format::kZlib, level),
                 InvalidArgumentError);
}

INSTANTIATE_TEST_SUITE_P(Formats, DeflateTest, ::testing::Values(Format::kZlib, Format::kGzip));

}  // namespace
}  // namespace longhaul
