#include "longhaul/checkpoint/directory/retention_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/retention_lock.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RetentionFile : public ::testing::Test {
 protected:
  std::string path() { return retention_path(directory_.path()); }
  KeptCheckpoints read_text(const std::string& text) {
    write_file_atomically(files_, path(), text);
    log_.clear();
    const LogSink before = set_log_sink([this](LogLevel, const std::string& message) { log_ += message; });
    KeptCheckpoints kept = read_retention(files_, directory_.path());
    set_log_sink(before);
    return kept;
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
  std::string log_;
};

TEST_F(RetentionFile, EverythingComesBack) {
  const KeptCheckpoints kept = {{directory_.file("m-1"), {.pinned = true}},
                                {directory_.file("m 2"), {.metric = -1.5e-300, .fallen_out = true}},
                                {directory_.file("m-3"), {.pinned = true, .metric = 0.1, .fallen_out = true}}};
  write_retention(files_, directory_.path(), kept);
  EXPECT_EQ(read_retention(files_, directory_.path()), kept);
}

TEST_F(RetentionFile, HasALineForEachCheckpoint) {
  write_retention(
      files_, directory_.path(),
      {{directory_.file("m-1"), {.pinned = true}}, {directory_.file("m-2"), {.metric = 0.93, .fallen_out = true}}},
      "latest");
  EXPECT_EQ(read_file(files_, directory_.file("latest.retention")),
            "longhaul retention 1\npinned checkpoint m-1\nfallen_out metric 0.93 checkpoint m-2\n");
}

TEST_F(RetentionFile, IsReadInAnyDirectory) {
  const KeptCheckpoints kept = read_text("longhaul retention 1\npinned checkpoint m-1\n");
  EXPECT_TRUE(kept.at(directory_.file("m-1")).pinned);
}

TEST_F(RetentionFile, OneThatCannotBeUsedIsNone) {
  EXPECT_THAT(read_retention(files_, directory_.path()), IsEmpty());
  for (const char* bad :
       {"", "longhaul retention 2\n", "longhaul retention 1\npinned m-1\n",
        "longhaul retention 1\nmetric x checkpoint m-1\n", "longhaul retention 1\nmetric nan checkpoint m-1\n",
        "longhaul retention 1\nmetric 1 checkpoint \n", "longhaul retention 1\npinned\n"}) {
    EXPECT_THAT(read_text(bad), IsEmpty()) << bad;
  }
}

TEST_F(RetentionFile, ALineThatNamesAFileElsewhereIsRefusedAndTheOthersCount) {
  const std::string start = "longhaul retention 1\n";
  for (const std::string& bad : {std::string("../victim/thesis.tex"), std::string("/etc/passwd"), std::string(".."),
                                 std::string("a/b"), std::string("m\0n", 3), std::string(256, 'm')}) {
    const KeptCheckpoints kept = read_text(start + "fallen_out checkpoint " + bad + "\npinned checkpoint m-1\n");
    ASSERT_EQ(kept.size(), 1u) << bad;
    EXPECT_TRUE(kept.at(directory_.file("m-1")).pinned) << bad;
    EXPECT_THAT(log_, HasSubstr("1 lines are ignored")) << bad;
  }
}

TEST_F(RetentionFile, WhatIsLoggedOfItIsShort) {
  read_text("longhaul retention 1\npinned checkpoint " + std::string(3'000'000, 'x') + "\n");
  EXPECT_LT(log_.size(), 1000u);
  read_text("longhaul retention 1\n" + std::string(3'000'000, 'x') + "\n");
  EXPECT_LT(log_.size(), 1000u);
  read_text("longhaul retention 1\n" + std::string(size_t{5} << 20, 'x') + "\n");
  EXPECT_THAT(log_, HasSubstr("at most 4194304 are allowed"));
}

TEST_F(RetentionFile, OneThatCannotBeUsedIsAnErrorForWhoWouldReplaceIt) {
  EXPECT_FALSE(usable_retention(files_, directory_.path(), "x").has_value());
  EXPECT_FALSE(usable_retention(files_, directory_.file("none"), "x").has_value());
  write_retention(files_, directory_.path(), {});
  EXPECT_TRUE(usable_retention(files_, directory_.path(), "x").has_value());
  read_text("longhaul retention 2\n");
  try {
    usable_retention(files_, directory_.path(), "nothing is deleted");
    FAIL();
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("so nothing is deleted"), HasSubstr("Repair " + path())));
  }
}

TEST_F(RetentionFile, ALockIsWaitedForAndNoLonger) {
  testing::FakeClock clock(testing::FakeClock::Waits::kPassTime);
  const auto lock = [&] { return RetentionLock(files_, clock, directory_.path(), Seconds{2}).state(); };
  {
    const RetentionLock first(files_, clock, directory_.path(), Seconds{2});
    EXPECT_EQ(first.state(), RetentionLock::State::kHeld);
    const Seconds began = clock.now();
    EXPECT_EQ(lock(), RetentionLock::State::kTaken);
    EXPECT_NEAR((clock.now() - began).count(), 2, 0.1);
  }
  EXPECT_EQ(lock(), RetentionLock::State::kHeld);
  EXPECT_THAT(files_.list(directory_.path()), IsEmpty());
  const RetentionLock nowhere(files_, clock, directory_.file("none"), Seconds{2});
  EXPECT_EQ(nowhere.state(), RetentionLock::State::kFailed);
  EXPECT_THAT(nowhere.why(), HasSubstr("checkpoint.retention.lock"));
}

TEST_F(RetentionFile, APipeInItsPlaceIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(read_retention(files_, directory_.path()), IsEmpty());
}

TEST_F(RetentionFile, OneThatSaysNothingIsNotNone) {
  EXPECT_FALSE(find_retention(files_, directory_.path()).has_value());
  write_retention(files_, directory_.path(), {});
  EXPECT_EQ(find_retention(files_, directory_.path()), KeptCheckpoints());
}

TEST_F(RetentionFile, ANameWithALineBreakIsRefused) {
  EXPECT_THROW(write_retention(files_, directory_.path(), {{directory_.file("m\nn"), {.pinned = true}}}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
