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

#include "longhaul/base/error.h"
#include "longhaul/base/size_text.h"
#include "longhaul/base/thread.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Truly;

// Each in a process of its own, whose log has not been used.
class LogOfAProcess : public ::testing::Test {
 protected:
  LogOfAProcess() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    unsetenv("LONGHAUL_LOG_LEVEL");
    unsetenv("LONGHAUL_LOG_FORMAT");
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

TEST_F(LogOfAProcess, IsInJsonIfTheVariableSaysSo) {
  setenv("LONGHAUL_LOG_FORMAT", "json", 1);
  setenv("LONGHAUL_LOG_LEVEL", "warning", 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0),
              AllOf(ContainsRegex("^\\{\"time\":\"[-0-9T:.]+Z\",\"severity\":\"warning\","
                                  "\"source\":\"longhaul/base/log_test.cc:[0-9]+\",\"thread\":\"[^\"]+\","
                                  "\"thread_id\":[0-9]+,\"message\":\"of a risk\"\\}\n\\{\"time\""),
                    HasSubstr("\"message\":\"of a failure\"}\n"), Not(HasSubstr("of the training"))));
}

TEST_F(LogOfAProcess, NamesTheFormatsThatThereAre) {
  setenv("LONGHAUL_LOG_FORMAT", "yaml", 1);
  EXPECT_EXIT(log_each_and_exit(), ExitedWithCode(0),
              AllOf(HasSubstr("error: LONGHAUL_LOG_FORMAT is \"yaml\", but must be text or json; using text"),
                    HasSubstr("longhaul info: of the training")));
  EXPECT_THROW(set_log_format("yaml"), InvalidArgumentError);
}

TEST_F(LogOfAProcess, TellsOfTheLinesBeforeItsFormatWasSet) {
  const auto set_late = [] {
    log_info("early");
    set_log_format("json");
    log_info("late");
    exit(0);
  };
  EXPECT_EXIT(set_late(), ExitedWithCode(0),
              AllOf(HasSubstr("info: early\n{"), HasSubstr("1 line of this log was written as text, before"),
                    HasSubstr("\"message\":\"late\"}\n")));
}

TEST_F(LogOfAProcess, OfManyThreadsHasWholeLines) {
  const auto log_from_threads = [] {
    set_log_format(LogFormat::kJson);
    std::vector<NamedThread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back("talker", [] {
        for (int j = 0; j < 200; ++j) log_info("{}", std::string(300, 'x'));
      });
    }
    for (NamedThread& thread : threads) thread.join();
    exit(0);
  };
  const auto are_whole = [](const std::string& text) {
    size_t count = 0;
    for (size_t at = 0; at < text.size(); ++count) {
      const size_t end = text.find('\n', at);
      if (end == text.npos || text.compare(at, 9, "{\"time\":\"") < 0 || text[end - 1] != '}') return false;
      if (text.find('{', at + 1) < end) return false;
      at = end + 1;
    }
    return count == 1600;
  };
  EXPECT_EXIT(log_from_threads(), ExitedWithCode(0), Truly(are_whole));
}

TEST_F(LogOfAProcess, InJsonSaysHowManyLinesAreMissing) {
  const auto log_to_full = [] {
    set_log_format(LogFormat::kJson);
    const int outside = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY);
    dup2(full, STDERR_FILENO);
    log_info("lost");
    log_info("lost");
    dup2(outside, STDERR_FILENO);
    log_info("here");
    log_info("there");
    exit(0);
  };
  EXPECT_EXIT(log_to_full(), ExitedWithCode(0),
              AllOf(HasSubstr("\"message\":\"here\",\"lost_lines\":2}\n"), HasSubstr("\"message\":\"there\"}\n")));
}

TEST_F(LogOfAProcess, InJsonHasOnStderrWhatItsSinkThrowsAt) {
  const auto throw_at_each = [] {
    set_log_format(LogFormat::kJson);
    set_log_sink([](LogLevel, const std::string&) { throw 7; });
    log_info("of the training");
    exit(0);
  };
  EXPECT_EXIT(throw_at_each(), ExitedWithCode(0),
              AllOf(HasSubstr("\"message\":\"of the training\"}\n"), HasSubstr("the log sink threw an exception")));
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
