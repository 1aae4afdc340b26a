#include "longhaul/base/whole_lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "longhaul/base/above_stdio.h"

namespace longhaul {
namespace {

constexpr Seconds kShort{0.01};

class PipeOfLines : public ::testing::Test {
 protected:
  PipeOfLines() {
    const AboveStdio above;
    if (pipe2(ends_, O_CLOEXEC) != 0) std::abort();
    size_ = fcntl(ends_[1], F_SETPIPE_SZ, 8192);
  }
  ~PipeOfLines() override {
    close_reader();
    close(ends_[1]);
  }
  void close_reader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  std::string read_some() {
    char text[65536];
    const ssize_t count = read(ends_[0], text, sizeof text);
    return count > 0 ? std::string(text, static_cast<size_t>(count)) : "";
  }
  void fill() {
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string full(static_cast<size_t>(size_), 'x');
    EXPECT_EQ(write(ends_[1], full.data(), full.size()), size_);
    fcntl(ends_[1], F_SETFL, 0);
  }

  int ends_[2] = {-1, -1};
  int size_ = 0;
};

TEST_F(PipeOfLines, AReaderGetsThem) {
  WholeLines lines(ends_[1]);
  EXPECT_TRUE(lines.write("one\n"));
  EXPECT_TRUE(lines.write("two\n"));
  EXPECT_EQ(read_some(), "one\ntwo\n");
}

// It would end the process by SIGPIPE, or wait for ever.
TEST_F(PipeOfLines, WithoutAReaderTheyAreLost) {
  close_reader();
  WholeLines lines(ends_[1]);
  EXPECT_FALSE(lines.write("one\n"));
  EXPECT_FALSE(WholeLines(-1).write("one\n")) << "closed";
}

TEST_F(PipeOfLines, AFullPipeIsWaitedForOnceAndThenNotUntilItIsReadAgain) {
  fill();
  WholeLines lines(ends_[1], kShort);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(lines.write("lost\n"));
  EXPECT_EQ(read_some(), std::string(static_cast<size_t>(size_), 'x'));
  EXPECT_TRUE(lines.write("one\n"));
  EXPECT_EQ(read_some(), "one\n");
}

TEST_F(PipeOfLines, ALineThatWasCutIsEndedBeforeTheNext) {
  WholeLines lines(ends_[1], kShort);
  EXPECT_FALSE(lines.write(std::string(5 * 4096, 'a') + "\n")) << "more than the pipe takes";
  const std::string part = read_some();
  EXPECT_EQ(part.find_first_not_of('a'), part.npos);
  EXPECT_TRUE(lines.write("next\n"));
  EXPECT_EQ(read_some(), "\nnext\n");
}

// /dev/full: no room on the device.
TEST(WholeLines, AFullDiskCostsTheLineAlone) {
  const AboveStdio above;
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_FALSE(WholeLines(full).write("one\n"));
  close(full);
}

}  // namespace
}  // namespace longhaul
