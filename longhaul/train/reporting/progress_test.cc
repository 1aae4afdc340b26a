#include "longhaul/train/reporting/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// What a terminal shows, to the first end of a line; it may come in pieces.
std::string read_line(int terminal) {
  std::string text;
  while (text.find('\n') == std::string::npos) {
    pollfd ready{terminal, POLLIN, 0};
    char piece[512];
    const ssize_t size = ::poll(&ready, 1, 20'000) == 1 ? ::read(terminal, piece, sizeof piece) : 0;
    if (size <= 0) break;
    text.append(piece, static_cast<size_t>(size));
  }
  return text;
}

TEST(Progress, IsPlainLinesWhereNobodyLooks) {
  std::FILE* file = std::tmpfile();
  {
    Progress progress(100, file);
    EXPECT_TRUE(progress.due(100));
    EXPECT_FALSE(progress.due(101)) << "the next line comes after seconds";
    progress.show({.step = 100, .last_step = 200, .values = "loss 0.5000"});
    progress.show({.step = 150, .last_step = 200, .values = "loss 0.2500"});
  }
  std::rewind(file);
  char text[512] = {};
  EXPECT_GT(std::fread(text, 1, sizeof text - 1, file), 0u);
  std::fclose(file);
  EXPECT_THAT(text, HasSubstr("step 100 of 200  loss 0.5000"));
  EXPECT_THAT(text, ContainsRegex("step 150 of 200  loss 0.2500  [0-9]+ steps/s  [0-9]+ s left\n"));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(Progress, NamesTheEpochAndNoTimeLeftWhereTheLastStepIsNotKnown) {
  std::FILE* file = std::tmpfile();
  Progress(0, file).show({.step = 7, .part = "epoch 2 of 10"});
  std::rewind(file);
  char text[512] = {};
  EXPECT_GT(std::fread(text, 1, sizeof text - 1, file), 0u);
  std::fclose(file);
  EXPECT_THAT(text, ContainsRegex("^epoch 2 of 10  step 7  [0-9.e+]+ steps/s\n$"));
}

TEST(Progress, IsALineOfALogInJson) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto show = [] {
    set_log_format(LogFormat::kJson);
    Progress progress(100);
    progress.due(100);
    progress.show({.step = 150,
                   .last_step = 200,
                   .values = "loss 0.2500",
                   .part = "epoch 2 of 10",
                   .saved_ago = Seconds{35},
                   .failed_saves = 2});
    std::exit(0);
  };
  EXPECT_EXIT(show(), ::testing::ExitedWithCode(0),
              AllOf(ContainsRegex("\"severity\":\"info\".*\"message\":\"epoch 2 of 10  step 150 of 200  loss 0.2500  "
                                  "[0-9.e+]+ steps/s  [0-9]+ s left  saved 35 s ago, 2 saves failed\""),
                    HasSubstr("\"event\":\"progress\",\"step\":150,\"last_step\":200,\"steps_per_second\":"),
                    HasSubstr("\"values\":\"loss 0.2500\",\"part\":\"epoch 2 of 10\",\"saved_seconds_ago\":35.0,"
                              "\"failed_saves\":2}\n"),
                    Not(HasSubstr("\r"))));
}

// What a line says of the saves.
std::string shown_saves(std::optional<Seconds> saved_ago, int failed) {
  std::FILE* file = std::tmpfile();
  Progress(7, file).show({.step = 7, .saved_ago = saved_ago, .failed_saves = failed});
  std::rewind(file);
  char text[512] = {};
  EXPECT_GT(std::fread(text, 1, sizeof text - 1, file), 0u);
  std::fclose(file);
  const std::string line = text;
  const size_t at = line.find("steps/s") == line.npos ? line.find("step 7") + 6 : line.find("steps/s") + 7;
  return line.substr(at);
}

TEST(Progress, TellsHowTheSavesGo) {
  EXPECT_EQ(shown_saves(std::nullopt, 0), "\n");
  EXPECT_EQ(shown_saves(Seconds{35}, 0), "  saved 35 s ago\n");
  EXPECT_EQ(shown_saves(Seconds{725}, 1), "  saved 12 min 05 s ago, 1 save failed\n");
  EXPECT_EQ(shown_saves(std::nullopt, 3), "  3 saves failed\n");
}

TEST(Progress, WhatIsWrongWithItsOptionsIsSaid) {
  EXPECT_THROW(check_progress({.out = nullptr}, "here"), InvalidArgumentError);
  EXPECT_NO_THROW(check_progress({}, "here"));
}

// A terminal, or a pipe, of which a test sees what is written.
class Looker {
 public:
  Looker(int reads, int writes) : reads_(reads), file_(fdopen(writes, "w")) {}
  ~Looker() {
    std::fclose(file_);
    ::close(reads_);
  }
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  static std::unique_ptr<Looker> at_terminal(unsigned short columns = 80) {
    int reads = -1, writes = -1;
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(openpty(&reads, &writes, nullptr, nullptr, &size), 0);
    return std::make_unique<Looker>(reads, writes);
  }
  static std::unique_ptr<Looker> at_pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    return std::make_unique<Looker>(ends[0], ends[1]);
  }

  std::FILE* file() const { return file_; }
  std::string line() const { return read_line(reads_); }
  void leave() { ::close(std::exchange(reads_, -1)); }

 private:
  int reads_;
  std::FILE* const file_;
};

TEST(Progress, IsOneLiveLineOnATerminal) {
  const auto terminal = Looker::at_terminal();
  {
    Progress progress(0, terminal->file());
    progress.show({.step = 0, .last_step = 200, .values = "loss 0.5"});
    progress.show({.step = 50, .last_step = 200, .values = "loss 0.25"});
  }
  const std::string text = terminal->line();
  EXPECT_THAT(text, ContainsRegex("\r.*step 0 of 200.*\r.*step 50 of 200"));
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "only at the end";
}

TEST(Progress, ALineThatIsTooLongForTheTerminalIsCut) {
  const auto terminal = Looker::at_terminal(19);
  Progress(0, terminal->file()).show({.step = 7, .values = "length 12\u00b5m and more"});
  EXPECT_THAT(terminal->line(), HasSubstr("\x1b[Kstep 7  length 12\r\n")) << "no half of a character";
}

TEST(Progress, AReaderThatHasStoppedOrGoneCostsLinesAlone) {
  const auto pipe = Looker::at_pipe();
  Progress progress(0, pipe->file());
  const ProgressLine line{.step = 1, .values = std::string(4000, 'x')};
  std::fputs("the program has begun\n", pipe->file());
  progress.show(line);
  EXPECT_EQ(pipe->line().substr(0, 22), "the program has begun\n") << "what was printed comes first";
  for (int i = 0; i < 100; ++i) progress.show(line);  // a pipe has 64 KiB
  std::fputs("it goes on\n", pipe->file());
  progress.show(line);
  pipe->leave();
  progress.show(line);
  __fpurge(pipe->file());
}

TEST(Progress, ValuesAreOnOneLineAndNoCommandsOfATerminal) {
  const std::string text = progress_values({{"a\x1b[2J", "a:0"}, {"b", "b:0"}},
                                           {Tensor::scalar(std::string("x\ny")), Tensor::scalar(0.12345678f)});
  EXPECT_EQ(text, "a\\x1b[2J x\\x0ay  b 0.1235");
}

TEST(Progress, AMessageOfTheLogTakesThePlaceOfTheLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto show = [] {
    int reads = -1, terminal = -1;
    if (openpty(&reads, &terminal, nullptr, nullptr, nullptr) != 0) std::exit(1);
    const int outside = dup(STDERR_FILENO);
    dup2(terminal, STDERR_FILENO);
    {
      Progress progress(0, fdopen(terminal, "w"));
      progress.show({.step = 7});
      log_warning("something happened");
    }  // there is no line to end
    dup2(outside, STDERR_FILENO);
    std::string text = read_line(reads);
    pollfd more{reads, POLLIN, 0};
    if (::poll(&more, 1, 0) > 0) text += "MORE";
    dprintf(STDERR_FILENO, "%s", text.c_str());
    std::exit(0);
  };
  EXPECT_EXIT(show(), ::testing::ExitedWithCode(0),
              AllOf(ContainsRegex("step 7.*\r\x1b\\[K[^\r]*something happened"), Not(HasSubstr("MORE"))));
}

}  // namespace
}  // namespace longhaul
