#include "longhaul/console/machine/machine_check.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "longhaul/console/machine/helper_output.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = MachineFinding::State;

class MachineCheckTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    files_.make_directories(directory_name(directory_.file(path)));
    write_file_atomically(files_, directory_.file(path), text);
  }
  static MachineFinding of(const std::vector<MachineFinding>& findings, const std::string& subject) {
    for (const MachineFinding& finding : findings) {
      if (finding.subject == subject) return finding;
    }
    ADD_FAILURE() << subject;
    return {};
  }
  MachineFinding here(const std::string& subject) { return of(machine_findings(directory_.path() + "/"), subject); }

  FileSystem& files_ = FileSystem::real();
  const testing::TemporaryDirectory directory_;
};

TEST_F(MachineCheckTest, ReadsWhatTheKernelSays) {
  put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  put("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    2000 kB\n");
  EXPECT_EQ(here("huge pages").state, State::kNote);
  EXPECT_THAT(here("huge pages").remedy, HasSubstr("echo madvise"));
  EXPECT_EQ(here("clock source").state, State::kNote);
  EXPECT_THAT(here("memory").here, HasSubstr("2.05 MB available"));
  put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  EXPECT_EQ(here("huge pages").state, State::kGood);
  EXPECT_EQ(here("clock source").state, State::kGood);
}

TEST_F(MachineCheckTest, AMachineThatSaysNothingIsNoError) {
  EXPECT_EQ(here("huge pages").here, "not known");
  EXPECT_EQ(machine_findings().size(), machine_findings(directory_.path() + "/").size());
}

TEST_F(MachineCheckTest, ADirectoryIsProbedOnlyIfToldTo) {
  const auto looked = directory_findings(files_, directory_.path(), false);
  EXPECT_EQ(looked.size(), 2u);
  const auto probed = directory_findings(files_, directory_.path(), true);
  EXPECT_EQ(of(probed, "hard links").here, "work");
  EXPECT_EQ(of(probed, "locks").here, "work");
  EXPECT_THAT(of(probed, "writing").here, HasSubstr("B/s"));
  EXPECT_EQ(of(probed, "its clock").state, State::kGood);
  EXPECT_THAT(files_.list(directory_.path()), IsEmpty());
}

TEST_F(MachineCheckTest, ADirectoryThatIsNotThereIsAFinding) {
  const auto findings = directory_findings(files_, directory_.file("none"), true);
  EXPECT_EQ(of(findings, "room").state, State::kBad);
  EXPECT_THAT(of(findings, "writing").here, HasSubstr("No such file"));
}

TEST_F(MachineCheckTest, TheReportHasRemediesOfWhatIsNotGood) {
  const Report report =
      report_machine({{.subject = "a", .here = "fine", .wanted = "w"},
                      {.subject = "b", .state = State::kBad, .here = "\x1b", .wanted = "v", .remedy = "r"}},
                     {});
  EXPECT_FALSE(report.is_fine);
  EXPECT_EQ(report.text,
            "good  a                   fine\n"
            "bad   b                   \\x1b\n"
            "                          wanted: v\n"
            "                          remedy: r\n");
  EXPECT_EQ(report.json["findings"][1]["remedy"], "r");
}

TEST_F(MachineCheckTest, LibtorchIsAskedByAHelper) {
  put("helper", "#!/bin/sh\necho version 1.13.1\necho threads 2\n");
  std::filesystem::permissions(directory_.file("helper"), std::filesystem::perms::owner_all);
  const HelperOutput output = output_of(directory_.file("helper"), Seconds{30});
  EXPECT_EQ(output.problem, "");
  EXPECT_EQ(of(torch_findings(output.text, ""), "libtorch version").here, "1.13.1");
  EXPECT_EQ(torch_findings("", "none")[0].state, State::kNote);
}

TEST_F(MachineCheckTest, AHelperThatFailsOrHangsIsAProblem) {
  EXPECT_THAT(output_of(directory_.file("none"), Seconds{30}).problem, HasSubstr("cannot be started"));
  EXPECT_THAT(output_of("/bin/false", Seconds{30}).problem, HasSubstr("failed"));
  put("helper", "#!/bin/sh\nexec sleep 100\n");
  std::filesystem::permissions(directory_.file("helper"), std::filesystem::perms::owner_all);
  EXPECT_THAT(output_of(directory_.file("helper"), Seconds{0.2}).problem, HasSubstr("took more than 0.2 s"));
  EXPECT_EQ(helper_path("no-such-helper"), "");
}

}  // namespace
}  // namespace longhaul::console
