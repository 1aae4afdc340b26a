// The program `longhaul` on a terminal, and elsewhere: colours and a line that is drawn again and again are for the
// first alone.
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/longhaul_program_fixture.h"
#include "tests/terminal_program.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

class LonghaulOnATerminal : public LonghaulTrainings {
 protected:
  // With a terminal that has colours, unless `environment` says otherwise.
  static Words command_of(const Words& arguments, const Words& environment) {
    Words command{"/usr/bin/env", "-u", "NO_COLOR", "-u", "COLUMNS", "TERM=xterm"};
    command.insert(command.end(), environment.begin(), environment.end());
    command.emplace_back(LONGHAUL_PROGRAM);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  // What a terminal shows of it.
  std::string shown(const Words& arguments, const Words& environment = {}) {
    testing::TerminalProgram program(command_of(arguments, environment), kColumns);
    status_ = program.wait();
    return program.shown();
  }
  std::string through_a_pipe(const Words& arguments) {
    testing::Process program(command_of(arguments, {}), path("output"));
    program.wait();
    return program.output() + program.errors();
  }
  // Those that report, each with something to paint.
  std::vector<Words> commands() const {
    const std::string demo = path("runs/demo"), first = demo + "/model.ckpt-1000";
    return {{"status", demo},
            {"runs", demo},
            {"ls", demo},
            {"events", demo},
            {"events", demo, "--tag=loss", "--plot"},
            {"show", demo},
            {"show", demo, "dense/weights"},
            {"verify", demo, "--all"},
            {"diff", first, demo},
            {"prune", demo, "--keep=1"},
            {"doctor"}};
  }
  // A file of weights with so many bytes of zeros, which need no room.
  std::string file_of_weights(uint64_t bytes) const {
    const std::string header = R"({"w":{"dtype":"F32","shape":[)" + std::to_string(bytes / 4) +
                               R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
    const uint64_t size = header.size();
    std::ofstream(path("w.safetensors"), std::ios::binary)
        .write(reinterpret_cast<const char*>(&size), sizeof size)
        .write(header.data(), static_cast<std::streamsize>(size));
    std::filesystem::resize_file(path("w.safetensors"), sizeof size + size + bytes);
    return path("w.safetensors");
  }
  // What is shown while so many bytes are read that it takes a while here: a bar comes after a tenth of a second.
  std::string shown_with_bar(const Words& environment) {
    constexpr uint64_t kMost = uint64_t{32} << 30;
    std::string all;
    for (; bytes_ <= kMost && all.find('\r') == all.npos; bytes_ *= 2) {
      all = shown({"show", "--values", file_of_weights(bytes_)}, environment);
    }
    return all;
  }

  static constexpr unsigned short kColumns = 200;
  int status_ = -1;
  uint64_t bytes_ = uint64_t{64} << 20;
};

TEST_F(LonghaulOnATerminal, ReportsHaveColoursWhichChangeNothingElse) {
  for (const Words& command : commands()) {
    const std::string painted = shown(command), plain = shown(command, {"NO_COLOR=1"});
    EXPECT_THAT(painted, ContainsRegex("\x1b\\[[0-9]+m[^\x1b]+\x1b\\[0m")) << command[0];
    EXPECT_EQ(shape_of(std::regex_replace(painted, std::regex("\x1b\\[[0-9]+m"), "")), shape_of(plain)) << command[0];
  }
}

TEST_F(LonghaulOnATerminal, ElsewhereAllIsPlain) {
  for (const Words& command : commands()) {
    EXPECT_THAT(through_a_pipe(command), AllOf(HasSubstr("\n"), Not(HasSubstr("\x1b")), Not(HasSubstr("\r"))));
    for (const Words& environment : {Words{"NO_COLOR=1"}, {"TERM=dumb"}, {"TERM="}}) {
      EXPECT_THAT(shown(command, environment), AllOf(HasSubstr("\n"), Not(HasSubstr("\x1b"))))
          << command[0] << environment[0];
    }
  }
  EXPECT_THAT(shown({"status", "--json", path("runs/demo")}), Not(HasSubstr("\x1b"))) << "JSON is for programs";
}

TEST_F(LonghaulOnATerminal, WhatIsWrongIsRedAndWhatIsRightGreen) {
  EXPECT_THAT(shown({"status", path("runs/demo")}),
              AllOf(HasSubstr("\x1b[31mkilled\x1b[0m"), HasSubstr("wrong       \x1b[31mthe chief, process 4711")));
  EXPECT_THAT(shown({"verify", path("runs/demo")}), HasSubstr("\x1b[32mintact\x1b[0m"));
  put("runs/demo/model.ckpt-2000.data-00000-of-00001", std::string(848, 'x'));
  EXPECT_THAT(shown({"verify", path("runs/demo/model.ckpt-2000")}), HasSubstr("\x1b[31mdamaged\x1b[0m"));
  EXPECT_EQ(status_, 1);
}

TEST_F(LonghaulOnATerminal, ABarIsDrawnWhileBytesAreRead) {
  const std::string bar = "\r\\[[# ]+\\] +[0-9]+ %  [0-9.]+ [kMG]B of [0-9.]+ [MG]B  ";
  for (const Words& environment : {Words{"LC_ALL=C"}, {"LC_ALL=C", "NO_COLOR=1"}}) {
    const std::string all = shown_with_bar(environment);
    EXPECT_THAT(all, ContainsRegex(bar)) << environment.back();
    // It is gone before the report begins.
    EXPECT_THAT(all, ContainsRegex(bar + "[^\n]*\r +\r(\x1b\\[1m)?[^\r]*w\\.safetensors"));
    EXPECT_EQ(all.find("\x1b") != all.npos, environment.size() == 1);
  }
  EXPECT_THAT(shown({"show", "--values", file_of_weights(bytes_)}, {"TERM=dumb"}),
              AllOf(HasSubstr("w.safetensors"), Not(HasSubstr("\r"))));
}

// Ctrl-C: the kernel sends SIGINT to all programs in the foreground, so that none has to pass it on.
TEST_F(LonghaulOnATerminal, ARunPassesOnNoKey) {
  const std::string script =
      "trap 'echo got >> " + path("got") + "' INT; trap 'exit 75' TERM; echo ready; while :; do sleep 0.01; done";
  for (const bool is_in_foreground : {true, false}) {
    Words command{LONGHAUL_PROGRAM, "run", "--"};
    if (!is_in_foreground) command.emplace_back("/usr/bin/setsid");  // a session of its own, without a terminal
    command.insert(command.end(), {"/bin/sh", "-c", script});
    testing::TerminalProgram run(command);
    ASSERT_TRUE(run.shows("ready")) << run.shown();
    run.type("\x03");
    EXPECT_TRUE(run.shows("signal 2 (Interrupt)")) << run.shown();
    run.send(SIGTERM);
    EXPECT_EQ(run.wait(), 75);
    EXPECT_EQ(read_file(files_, path("got")), "got\n") << is_in_foreground;
    EXPECT_THAT(run.shown(), AllOf(HasSubstr("which is not started again"), Not(HasSubstr("\x1b"))));
  }
}

}  // namespace
}  // namespace longhaul
