#include "tests/soak/faulty_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include "tests/process.h"

namespace longhaul::soak {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kEndless{300};  // a run that lasts longer hangs

std::unique_ptr<testing::Process> start(const Training& training, const std::string& faults) {
  if (faults.empty()) {
    ::unsetenv("LONGHAUL_FAULTS");
  } else {
    ::setenv("LONGHAUL_FAULTS", faults.c_str(), 1);
  }
  const std::vector<std::string> command{training.program, training.directory, std::to_string(training.steps),
                                         std::to_string(training.width)};
  return std::make_unique<testing::Process>(command, training.directory + ".output");
}

// What it prints: a step in each line.
void read_output(FaultyRun& run, const std::string& output) {
  std::istringstream lines(output);
  int64_t step = 0;
  while (lines >> step) {
    if (!run.restored) run.restored = step;
    run.reached = step;
  }
}

FaultyRun finished(testing::Process& process, const std::string& fault) {
  FaultyRun run{.fault = fault, .status = process.wait(kEndless)};
  run.log = process.errors();
  run.passed_over = run.log.find("is passed over for the one") != run.log.npos;
  read_output(run, process.output());
  return run;
}

struct FileFault {
  const char* kind;
  const char* pattern;  // {}: the number of the operation
  uint64_t up_to;
};
constexpr std::array kFileFaults{
    FileFault{"killed at a write", "kill@write:{}", 400},
    FileFault{"killed at a write of a checkpoint", "kill@write(model.ckpt):{}", 60},
    FileFault{"killed at a sync", "kill@sync:{}", 40},
    FileFault{"killed at a rename", "kill@rename:{}", 40},
    FileFault{"killed at a sync of the directory", "kill@sync_directory:{}", 40},
    FileFault{"killed at a removal", "kill@remove:{}", 30},
    FileFault{"torn write", "torn@write:{}", 400},
    FileFault{"torn write of a checkpoint", "torn@write(model.ckpt):{}", 60},
    FileFault{"disk full for a while", "enospc@write:{0}-{1}", 200},
    FileFault{"disk full for a checkpoint", "enospc@write(.data-):{0}-{1}", 30},
    FileFault{"I/O error of a write", "eio@write:{}", 200},
    FileFault{"I/O errors of syncs", "eio@sync:{0}-{1}", 30},
    FileFault{"I/O error of a rename", "eio@rename:{}", 30},
    FileFault{"bit flipped on its way to the disk", "flip@write(.data-):{}", 30},
    FileFault{"slow disk", "slow@any:{}+=15", 100},
};

FaultyRun run_with_file_fault(const Training& training, milliseconds longest, Random& random) {
  const FileFault& fault = kFileFaults[random() % kFileFaults.size()];
  const uint64_t first = 1 + random() % fault.up_to, last = first + random() % 20;
  const auto process = start(training, fmt::format(fmt::runtime(fault.pattern), first, last));
  if (process->runs_for(longest * 2)) process->send(SIGKILL);
  return finished(*process, fault.kind);
}

}  // namespace

FaultyRun run_undisturbed(const Training& training) {
  return finished(*start(training, ""), "none");
}

FaultyRun run_under_a_fault(const Training& training, milliseconds longest, Random& random) {
  const uint64_t choice = random() % 4;
  if (choice < 2) return run_with_file_fault(training, longest, random);
  const milliseconds moment(random() % static_cast<uint64_t>(longest.count()));
  const auto process = start(training, "");
  const bool is_stalled = choice == 2;
  if (process->runs_for(moment) && is_stalled) {
    process->send(SIGSTOP);
    process->runs_for(milliseconds(100 + random() % 1500));
    process->send(SIGCONT);
    process->runs_for(moment / 2);
  }
  process->send(SIGKILL);
  return finished(*process, is_stalled ? "stalled, then killed" : "killed at a random moment");
}

}  // namespace longhaul::soak
