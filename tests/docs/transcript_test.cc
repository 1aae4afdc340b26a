// README's transcript of the quickstart, compared with what such a training prints that is killed and started again:
// each of its lines is one of the training's, but for numbers, and for what "..." stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "examples/idx_dataset.h"
#include "longhaul/io/files/file.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

using testing::Process;

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The block of the page in which the training is killed; empty: there is none.
Lines transcript() {
  Lines block;
  bool is_open = false;
  for (const std::string& line : lines_of(read_file(FileSystem::real(), LONGHAUL_README))) {
    if (!line.starts_with("```")) {
      if (is_open) block.push_back(line);
      continue;
    }
    if (is_open && std::ranges::count(block, "Killed") == 1) return block;
    is_open = !is_open;
    block.clear();
  }
  return {};
}

std::string replaced(const std::string& text, const char* what, const char* by) {
  return std::regex_replace(text, std::regex(what), by);
}

// What lines that differ from this one only in numbers match. A line of the log has its date there.
std::regex shape_of(std::string line) {
  const bool is_cut = line.ends_with(" ...");
  if (is_cut) line.resize(line.size() - 4);
  std::string shape = replaced(line, R"([.^$|()\[\]{}*+?\\])", R"(\$&)");
  shape = replaced(shape, R"(\\\.\\\.\\\./)", R"(\S*/)");
  shape = replaced(shape, R"([0-9]+(\\\.[0-9]+)? s\b)", "@");
  shape = replaced(shape, R"([0-9]+(\\\.[0-9]+)?)", R"([0-9]+(\.[0-9]+)?)");
  shape = replaced(shape, "@", R"(([0-9.]+ (s|min|h|d) ?)+)");
  return std::regex((line.starts_with("longhaul ") ? R"(\S+ \S+ )" : "") + shape + (is_cut ? ".*" : ""));
}

bool has_line_like(const std::string& line, const std::string& text) {
  const std::regex shape = shape_of(line);
  return std::ranges::any_of(lines_of(text), [&](const std::string& one) { return std::regex_match(one, shape); });
}

TEST(TranscriptShape, HoldsEachWordAndNoNumber) {
  EXPECT_TRUE(has_line_like("step 0 of 8000  loss 2.4880", "begin\nstep 64 of 900  loss 0.5\nend\n"));
  EXPECT_FALSE(has_line_like("step 0 of 8000  loss 2.4880", "step 64 of 900  losses 0.5\n"));
  EXPECT_FALSE(has_line_like("step 0 of 8000  loss 2.4880", "step 64 of 900  loss 0.5  809 steps/s\n"));
  EXPECT_TRUE(has_line_like("809 steps/s  5 s left", "90 steps/s  1 min 05 s left"));
  EXPECT_FALSE(has_line_like("809 steps/s  5 s left", "90 steps/s  1 m 05 s left"));
  EXPECT_TRUE(
      has_line_like("longhaul info: .../runs: 5.1 s, ...", "1-1-1 0:0 longhaul info: /tmp/runs: 1 s, and so on"));
  EXPECT_FALSE(has_line_like("longhaul info: .../runs: 5.1 s, ...", "1-1-1 0:0 longhaul info: /tmp/runs: 1 s and so"));
}

// It depends on the machine; here on that of the page.
bool is_of_the_threads(const std::string& line) {
  return line.find("each operation uses") != std::string::npos;
}

class Transcript : public ::testing::Test {
 protected:
  std::unique_ptr<Process> start(const std::string& name) {
    const std::vector<std::string> command{FASHION_MNIST_PROGRAM, "--logdir=" + directory.file("runs/fashion"),
                                           "--steps=1000000", "--save_model_secs=1"};
    return std::make_unique<Process>(command, directory.file(name));
  }

  // Until it has told twice how fast it is, which takes the seconds in which goodput can be measured, and has saved a
  // later step than the first.
  static void expect_a_checkpoint(Process& training) {
    ASSERT_TRUE(training.prints("steps/s")) << training.output() << training.errors();
    const std::regex twice("steps/s[^\n]*\n[^\n]*steps/s"), saved("was saved: step [1-9]");
    const auto has_saved = [&] {
      return std::regex_search(training.output(), twice) && std::regex_search(training.errors(), saved);
    };
    for (int i = 0; i < 1000 && !has_saved(); ++i) ASSERT_TRUE(training.runs_for(std::chrono::milliseconds(50)));
    ASSERT_TRUE(has_saved()) << training.errors();
  }

  // All that it has printed so far.
  static std::string text_of(const Process& training) { return training.output() + training.errors(); }

  static void expect_lines(const Lines& lines, const std::string& text) {
    for (const std::string& line : lines) {
      if (is_of_the_threads(line)) continue;
      EXPECT_TRUE(has_line_like(line, text)) << "README.md: " << line << "\nis not like any of:\n" << text;
    }
  }

  testing::TemporaryDirectory directory;
};

TEST_F(Transcript, IsThatOfAFashionMnistTrainingKilledAndStartedAgain) {
  LONGHAUL_NEEDS("fashion_mnist", FileSystem::real().exists(examples::kFashionMnistDirectory),
                 "apt-get install dataset-fashion-mnist");
  const Lines lines = transcript();
  const auto kill = std::ranges::find(lines, "Killed");
  ASSERT_NE(kill, lines.end()) << "README.md has no block with the line \"Killed\"";
  const Lines before(lines.begin(), kill), after(kill + 1, lines.end());
  EXPECT_GE(before.size(), 5u);
  EXPECT_GE(after.size(), 4u);

  auto first = start("first");
  ASSERT_NO_FATAL_FAILURE(expect_a_checkpoint(*first));
  first->send(SIGKILL);
  first->wait();
  expect_lines(before, text_of(*first));

  auto second = start("second");
  ASSERT_TRUE(second->prints("step ")) << text_of(*second);
  second->send(SIGINT);
  EXPECT_EQ(second->wait(), 0) << text_of(*second);
  expect_lines(after, text_of(*second));
}

TEST_F(Transcript, SpeaksOfThreadsAsTheLibraryDoesOnTwoProcessors) {
  const ThreadChoice choice =
      choose_threads({.libtorch = 2, .by_default = 2, .usable = 2, .blas_has_own_threads = true, .blas = 2});
  const Lines lines = transcript();
  const auto line = std::ranges::find_if(lines, is_of_the_threads);
  ASSERT_NE(line, lines.end());
  EXPECT_TRUE(has_line_like(*line, "2026-01-01 00:00:00.000 longhaul info: " + choice.why)) << *line << choice.why;
}

}  // namespace
}  // namespace longhaul
