#include "longhaul/train/reporting/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

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
    progress.show(100, 200, "loss 0.5000");
    progress.show(150, 200, "loss 0.2500");
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
  Progress(0, file).show(7, 0, "", "epoch 2 of 10");
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
    progress.show(150, 200, "loss 0.2500", "epoch 2 of 10");
    std::exit(0);
  };
  EXPECT_EXIT(show(), ::testing::ExitedWithCode(0),
              AllOf(ContainsRegex("\"severity\":\"info\".*\"message\":\"epoch 2 of 10  step 150 of 200  loss 0.2500  "
                                  "[0-9.e+]+ steps/s  [0-9]+ s left\""),
                    HasSubstr("\"event\":\"progress\",\"step\":150,\"last_step\":200,\"steps_per_second\":"),
                    HasSubstr("\"values\":\"loss 0.2500\",\"part\":\"epoch 2 of 10\"}\n"), Not(HasSubstr("\r"))));
}

TEST(Progress, IsOneLiveLineOnATerminal) {
  int master = -1, terminal = -1;
  ASSERT_EQ(openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  std::FILE* file = fdopen(terminal, "w");
  {
    Progress progress(0, file);
    progress.show(0, 200, "loss 0.5");
    progress.show(50, 200, "loss 0.25");
  }
  std::fflush(file);
  const std::string text = read_line(master);
  std::fclose(file);
  ::close(master);
  EXPECT_THAT(text, ContainsRegex("\r.*step 0 of 200.*\r.*step 50 of 200"));
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "only at the end";
}

}  // namespace
}  // namespace longhaul
