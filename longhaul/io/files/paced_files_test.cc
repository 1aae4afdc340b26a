#include "longhaul/io/files/paced_files.h"

#include <gtest/gtest.h>

#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

class PacedFilesTest : public ::testing::Test {
 protected:
  // Reads two stretches of the file in a batch, one into memory, and returns how many bytes came.
  size_t read_all(FileSystem& files) {
    const auto file = files.open(path_);
    std::string out(10 * kMegabyte, '\0');
    const std::vector<ReadRequest> requests{{0, out.data(), out.size()}, {out.size(), nullptr, 3 * kMegabyte}};
    std::string shown(3 * kMegabyte, '\0');
    size_t bytes = 0;
    file->read_batch(requests, [&](const ReadPart& part) {
      ASSERT_FALSE(part.error);
      if (part.request == 1) shown.replace(part.begin, part.bytes.size(), part.bytes);
      bytes += part.bytes.size();
    });
    EXPECT_TRUE(out + shown == contents_);
    return bytes;
  }

  static std::string make_contents() {
    std::string contents(13 * kMegabyte, '\0');
    for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * 7 / 4096);
    return contents;
  }

  testing::TemporaryDirectory directory_;
  testing::FakeClock clock_{testing::FakeClock::Waits::kPassTime};
  const std::string path_ = directory_.file("large"), contents_ = make_contents();
};

TEST_F(PacedFilesTest, ReadsWhatIsThereInPiecesAtItsRate) {
  write_file_atomically(FileSystem::real(), path_, contents_);
  int pieces = 0;
  PacedFiles files(FileSystem::real(), 1e6, [&] { ++pieces; }, clock_);
  const Seconds start = clock_.now();
  EXPECT_EQ(read_all(files), contents_.size());
  EXPECT_EQ(pieces, 3);
  EXPECT_NEAR((clock_.now() - start).count(), 10 * kMegabyte / 1e6,
              0.1);  // the time of the last piece is not waited for
}

TEST_F(PacedFilesTest, WhatIsThrownBeforeAPieceEndsTheReading) {
  write_file_atomically(FileSystem::real(), path_, contents_);
  int pieces = 0;
  const auto end_at_second = [&] {
    if (++pieces == 2) throw CancelledError("enough");
  };
  PacedFiles files(FileSystem::real(), 0, end_at_second, clock_);
  std::string out(contents_.size(), '\0');
  const ReadRequest all{0, out.data(), out.size()};
  size_t bytes = 0;
  EXPECT_THROW(files.open(path_)->read_batch({&all, 1}, [&](const ReadPart& part) { bytes += part.bytes.size(); }),
               CancelledError);
  EXPECT_EQ(bytes, 8 * kMegabyte);
}

}  // namespace
}  // namespace longhaul
