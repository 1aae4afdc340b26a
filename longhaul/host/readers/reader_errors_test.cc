#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "longhaul/host/readers/reader.h"
#include "longhaul/io/records/record.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using Strings = std::vector<std::string>;

// Files of which a read can be made to fail: the n-th from now, 0 is the next.
class FailingReads : public testing::FaultyFileSystem {
 public:
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    return std::make_unique<File>(*this, FileSystem::real().open(path));
  }
  int until_fault = -1;

 private:
  class File : public ReadableFile {
   public:
    File(FailingReads& files, std::unique_ptr<ReadableFile> inner) : files_(files), inner_(std::move(inner)) {}
    uint64_t size() const override { return inner_->size(); }
    size_t read(uint64_t offset, char* out, size_t count) const override {
      if (files_.until_fault >= 0 && files_.until_fault-- == 0) throw UnavailableError("made to fail");
      return inner_->read(offset, out, count);
    }

   private:
    FailingReads& files_;
    const std::unique_ptr<ReadableFile> inner_;
  };
};

class ReaderErrors : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& contents) {
    write_file_atomically(FileSystem::real(), directory.file(name), contents);
    return directory.file(name);
  }
  // All records of the file, read one at a time, and how many calls failed.
  static Strings read_all(const OpenRecords& open, const std::string& path, FileSystem& files, int* failures) {
    Reader reader("reader", open);
    bool first = true;
    const auto next_file = [&] {
      if (!std::exchange(first, false)) throw OutOfRangeError("no more files");
      return path;
    };
    Strings values;
    while (true) {
      try {
        values.push_back(reader.read(1, next_file, files).values.at(0));
      } catch (const UnavailableError&) {
        ++*failures;
      } catch (const OutOfRangeError&) {
        return values;
      }
    }
  }

  testing::TemporaryDirectory directory;
};

TEST_F(ReaderErrors, AMissingFileIsAnErrorAndThenPassedOver) {
  Reader reader("reader", text_lines());
  Strings files{write("a", "a"), directory.file("none"), write("b", "b")};
  size_t next = 0;
  const auto next_file = [&] { return files.at(next++); };
  EXPECT_THAT(reader.read(5, next_file, FileSystem::real()).values, ElementsAre("a"));
  EXPECT_THROW(reader.read(1, next_file, FileSystem::real()), NotFoundError);
  EXPECT_THAT(reader.read(1, next_file, FileSystem::real()).values, ElementsAre("b"));
}

TEST_F(ReaderErrors, AnErrorThatIsLeftOverIsForgottenWithWhatWasBefore) {
  Reader reader("reader", tf_records());
  std::string records;
  append_record(records, "a");
  const std::string path = write("a", records + "cut");
  const auto next_file = [&] { return path; };
  const std::string fresh = reader.serialize_state();
  for (const bool restore : {false, true}) {
    EXPECT_THAT(reader.read(5, next_file, FileSystem::real()).values, ElementsAre("a"));
    restore ? reader.restore_state(fresh) : reader.reset();
    EXPECT_THAT(reader.read(5, next_file, FileSystem::real()).values, ElementsAre("a"));
    EXPECT_THROW(reader.read(5, next_file, FileSystem::real()), DataLossError);
    reader.reset();
  }
}

TEST_F(ReaderErrors, AnErrorOfOneCallsWaitIsNotTheNextCalls) {
  Reader reader("reader", text_lines());
  const std::string path = write("a", "a");
  bool first = true;
  const auto late = [&]() -> std::string {
    if (!std::exchange(first, false)) throw DeadlineExceededError("the run's time was over");
    return path;
  };
  EXPECT_THAT(reader.read(5, late, FileSystem::real()).values, ElementsAre("a"));
  EXPECT_THAT(reader.read(1, [&] { return path; }, FileSystem::real()).values, ElementsAre("a"));
}

// Of each format a file that takes several reads, and each of them fails once: nothing is lost or read twice.
TEST_F(ReaderErrors, AReadThatFailedIsMadeAgainByTheNextCall) {
  std::string lines, records;
  Strings values;
  for (const char letter : {'a', 'b', 'c'}) {
    values.emplace_back(200'000, letter);
    lines += values.back() + "\n";
    append_record(records, values.back());
  }
  const std::vector<std::pair<OpenRecords, std::string>> cases{
      {text_lines(), write("lines", lines)},
      {tf_records(), write("records", records)},
      {fixed_length_records({.record_bytes = 200'000, .hop_bytes = 200'001}), write("fixed", lines)}};
  for (const auto& [open, path] : cases) {
    for (int fault = 0; fault < 3; ++fault) {
      FailingReads files;
      files.until_fault = fault;
      int failures = 0;
      EXPECT_TRUE(read_all(open, path, files, &failures) == values) << path << " " << fault;
      EXPECT_EQ(failures, 1) << path << " " << fault;
    }
  }
}

}  // namespace
}  // namespace longhaul
