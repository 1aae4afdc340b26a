#include "longhaul/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/base/size_text.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::Not;

// Each in a process of its own, whose log has not been used.
class LogOfAProcess : public ::testing::Test {
 protected:
  LogOfAProcess() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    unsetenv("LONGHAUL_LOG_LEVEL");
    unsetenv("NO_COLOR");
  }

  static void log_each_and_exit() {
    log_debug("of debugging");
    log_info("of the training");
    log_warning("of a risk");
    log_error("of a failure");
    exit(0);
  }

  static void log_a_name_and_exit() {
    log_warning("of \x1b[2J\nand\r{}", std::string(1'000'000, 'x'));
    exit(0);
  }

  // What is logged to a terminal, on stderr.
  static void log_to_terminal_and_exit() {
    setenv("TERM", "xterm", 1);
    const int outside = dup(STDERR_FILENO), terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (grantpt(terminal) != 0 || unlockpt(terminal) != 0) exit(1);
    const int inside = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    dup2(inside, STDERR_FILENO);
    log_warning("of a risk");
    std::string text;
    while (!text.ends_with("\n")) {
      char part[1000];
      const ssize_t count = read(terminal, part, sizeof part);
      if (count <= 0) exit(1);
      text.append(part, static_cast<size_t>(count));
    }
    exit(write(outside, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
};

TEST_F(LogOfAProcess, TellsWhatHappensToTheTraining) {
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0),
              AllOf(HasSubstr("longhaul info: of the training"), HasSubstr("longhaul warning: of a risk"),
                    HasSubstr("longhaul error: of a failure"), Not(HasSubstr("of debugging")), Not(HasSubstr("\x1b"))));
}

TEST_F(LogOfAProcess, HasNothingThatATerminalObeysAndNoEndlessLine) {
  EXPECT_EXIT(log_a_name_and_exit(), ExitedWithCode(0),
              AllOf(HasSubstr("of \\x1b[2J\nand\\x0dxxx"), HasSubstr("x... (1000004 bytes)"), Not(HasSubstr("\x1b"))));
}

TEST_F(LogOfAProcess, TellsTheLevelThatTheVariableNamesAndWhatIsAbove) {
  setenv("LONGHAUL_LOG_LEVEL", "debug", 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0), HasSubstr("of debugging"));
  setenv("LONGHAUL_LOG_LEVEL", "warning", 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0), AllOf(HasSubstr("of a risk"), Not(HasSubstr("of the training"))));
  setenv("LONGHAUL_LOG_LEVEL", "error", 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0), AllOf(HasSubstr("of a failure"), Not(HasSubstr("of a risk"))));
  setenv("LONGHAUL_LOG_LEVEL", "off", 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0), Not(HasSubstr("longhaul")));
}

TEST_F(LogOfAProcess, HidesNothingBehindALevelThatThereIsNot) {
  setenv("LONGHAUL_LOG_LEVEL", "verbose", 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0),
              AllOf(HasSubstr("LONGHAUL_LOG_LEVEL is \"verbose\""), HasSubstr("debug, info, warning, error or off"),
                    HasSubstr("of the training")));
}

TEST_F(LogOfAProcess, HasColoursOnATerminal) {
  EXPECT_EXIT(log_to_terminal_and_exit(), ExitedWithCode(0), AllOf(HasSubstr("\x1b["), HasSubstr("of a risk")));
  setenv("NO_COLOR", "1", 1);
  EXPECT_EXIT(log_to_terminal_and_exit(), ExitedWithCode(0), AllOf(Not(HasSubstr("\x1b")), HasSubstr("of a risk")));
}

TEST_F(LogOfAProcess, ShowsAnExcerptOfALevelThatThereIsNot) {
  setenv("LONGHAUL_LOG_LEVEL", ("\x1b[31m" + std::string(100'000, 'v')).c_str(), 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0),
              AllOf(HasSubstr("\\x1b[31mvvv"), HasSubstr("... (100005 bytes)"), Not(HasSubstr(std::string(300, 'v')))));
}

TEST_F(LogOfAProcess, HasOnStderrWhatItsSinkLogs) {
  const auto log_from_within = [] {
    set_log_sink([](LogLevel, const std::string& message) { log_warning("within {}", message); });
    log_info("one");
    log_info("two");
    exit(0);
  };
  EXPECT_EXIT(log_from_within(), ExitedWithCode(0),
              AllOf(HasSubstr("warning: within one\n"), HasSubstr("warning: within two\n")));
}

TEST_F(LogOfAProcess, HasOnStderrWhatItsSinkThrowsAt) {
  const auto throw_at_each = [] {
    set_log_sink([](LogLevel, const std::string& message) {
      if (message == "of debugging") throw 7;
      throw std::runtime_error("a full pipe");
    });
    log_each_and_exit();
  };
  EXPECT_EXIT(
      throw_at_each(), ExitedWithCode(0),
      AllOf(
          HasSubstr(
              "the log sink threw an exception; messages that it throws on are written here: an exception that is not"),
          HasSubstr("info: of the training"), HasSubstr("error: of a failure"), Not(HasSubstr("a full pipe"))));
}

TEST(Log, ItsSinkMaySetAnother) {
  std::vector<std::string> first, second;
  LogSink of_first;
  const LogSink before = set_log_sink([&, kept = std::make_shared<int>(7)](LogLevel, const std::string& message) {
    of_first = set_log_sink([&](LogLevel, const std::string& later) { second.push_back(later); });
    first.push_back(message + std::to_string(*kept));
  });
  log_info("a");
  log_info("b");
  set_log_sink(of_first);
  log_info("c");
  set_log_sink(before);
  EXPECT_THAT(first, ElementsAre("a7", "c7"));
  EXPECT_THAT(second, ElementsAre("b"));
}

TEST(SizeText, IsInPowersOfAThousand) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(2820000), "2.82 MB");
  EXPECT_EQ(size_text(12'345'678'901), "12.3 GB");
}

}  // namespace
}  // namespace longhaul
