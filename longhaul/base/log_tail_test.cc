#include "longhaul/base/log_tail.h"

#include <gmock/gmock.h>

namespace longhaul {
namespace {

class LogTailTest : public ::testing::Test {
 protected:
  LogTailTest() : before_(set_log_sink([](LogLevel, const std::string&) {})) {}
  ~LogTailTest() override { set_log_sink(before_); }

 private:
  const LogSink before_;
};

TEST_F(LogTailTest, KeepsTheLastMessagesAndCountsAll) {
  LogTail tail(2);
  log_info("one");
  log_debug("not kept");
  log_warning("two");
  log_error("three");
  const std::vector<LogLine> lines = tail.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, "two");
  EXPECT_EQ(lines[1].text, "three");
  EXPECT_EQ(lines[1].level, LogLevel::kError);
  EXPECT_GT(lines[1].time, 1e9);
  EXPECT_EQ(tail.count(LogLevel::kInfo), 1);
  EXPECT_EQ(tail.count(LogLevel::kWarning), 1);
  EXPECT_EQ(tail.count(LogLevel::kDebug), 0);
}

TEST_F(LogTailTest, ASinkThatThrowsTakesNothingAway) {
  LogTail tail;
  set_log_sink([](LogLevel, const std::string&) { throw 1; });
  log_info("kept");
  ASSERT_EQ(tail.lines().size(), 1u);
}

TEST_F(LogTailTest, ALongMessageIsCutBetweenTwoLetters) {
  LogTail tail;
  std::string text(kMostTailText - 1, 'a');
  text += "\u00e9\u00e9\u00e9";
  log_info("{}", text);
  EXPECT_EQ(tail.lines()[0].text, std::string(kMostTailText - 1, 'a') + " ...");
}

TEST_F(LogTailTest, EachKeepsItsOwnAndNothingIsKeptWithoutOne) {
  log_info("before");
  LogTail first;
  {
    LogTail second;
    log_info("both");
    EXPECT_EQ(second.lines().size(), 1u);
  }
  log_info("only the first");
  EXPECT_EQ(first.lines().size(), 2u);
}

}  // namespace
}  // namespace longhaul
