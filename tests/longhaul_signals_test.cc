// The signals that `longhaul run` passes on to its program.
#include <string.h>

#include <regex>
#include <set>

#include "longhaul/console/restarts/forwarded_signals.h"
#include "tests/longhaul_program_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class LonghaulSignal : public LonghaulProgram, public ::testing::WithParamInterface<int> {
 protected:
  static std::string name_of(int signal) { return sigabbrev_np(signal); }

  std::string file(const std::string& name) { return read_file(FileSystem::real(), path(name)); }
};

TEST_P(LonghaulSignal, ReachesTheProgramAndEndsTheRunUnlessItAsksForACheckpoint) {
  // Its first start waits for a signal, and then asks to be started again; its second ends.
  std::string script = "echo x >> " + path("starts") + "; [ $(wc -l < " + path("starts") + ") = 1 ] || exit 0; ";
  for (const int signal : console::kForwardedSignals) {
    script += "trap 'echo " + name_of(signal) + " >> " + path("got") + "; exit 75' " + name_of(signal) + "; ";
  }
  script += "echo ready; while :; do sleep 0.01; done";
  testing::Process run({LONGHAUL_PROGRAM, "run", "--pause=0.01", "--", "/bin/sh", "-c", script}, path("output"));
  ASSERT_TRUE(run.prints("ready")) << run.errors();
  run.send(GetParam());
  const bool goes_on = GetParam() == SIGUSR2;
  EXPECT_EQ(run.wait(), goes_on ? 0 : 75) << run.errors();
  EXPECT_EQ(file("got"), name_of(GetParam()) + "\n");
  EXPECT_EQ(file("starts"), goes_on ? "x\nx\n" : "x\n") << run.errors();
  EXPECT_THAT(run.errors(), HasSubstr(goes_on ? "2 starts in " : "not started again: a stop signal was received"));
}

// "SIGTERM, SIGINT and SIGUSR1 are passed on".
std::set<std::string> names_of_passed_on(const std::string& text) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(text, found, std::regex("((SIG[A-Z0-9]+(, | and )?)+) are passed on"))) << text;
  std::set<std::string> names;
  const std::string list = found[1];
  const std::regex name("SIG[A-Z0-9]+");
  for (std::sregex_iterator it(list.begin(), list.end(), name), end; it != end; ++it) names.insert(it->str());
  return names;
}

TEST_F(LonghaulProgram, PassesOnTheSignalsThatItsHelpAndThePageOfTheGuideName) {
  std::set<std::string> names;
  for (const int signal : console::kForwardedSignals) names.insert("SIG" + std::string(sigabbrev_np(signal)));
  ASSERT_EQ(longhaul({"run", "--help"}), 0);
  EXPECT_EQ(names_of_passed_on(out_), names);
  EXPECT_EQ(names_of_passed_on(read_file(FileSystem::real(), LONGHAUL_COMMAND_PAGE)), names);
}

INSTANTIATE_TEST_SUITE_P(, LonghaulSignal, ::testing::ValuesIn(console::kForwardedSignals),
                         [](const auto& signal) { return std::string(sigabbrev_np(signal.param)); });

}  // namespace
}  // namespace longhaul
