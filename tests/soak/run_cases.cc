#include "tests/soak/run_cases.h"

#include <fmt/format.h>
#include <signal.h>

#include <array>

namespace longhaul::soak {
namespace {

constexpr int kKilled = 128 + SIGKILL;
constexpr int kPreempted = 75;  // docs/errors.md

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

FaultyRun run_with_file_fault(const Training& training, Random& random) {
  const FileFault& fault = kFileFaults[below(random, kFileFaults.size())];
  const uint64_t first = 1 + below(random, fault.up_to), last = first + below(random, 20);
  const auto process = start(training, {.file_faults = fmt::format(fmt::runtime(fault.pattern), first, last)});
  if (process->runs_for(training.length * 2)) process->send(SIGKILL);
  return finished(*process, fault.kind, {0, 1, kKilled});
}

FaultyRun kill_at_a_moment(const Training& training, Random& random) {
  const auto process = start(training);
  process->runs_for(moment(random, training.length));
  return killed(*process, "killed at a random moment");
}

FaultyRun stall_and_kill(const Training& training, Random& random) {
  const auto process = start(training);
  const milliseconds until = moment(random, training.length);
  if (process->runs_for(until)) {
    process->send(SIGSTOP);
    process->runs_for(milliseconds(100) + moment(random, milliseconds(1500)));
    process->send(SIGCONT);
    process->runs_for(until / 2);
  }
  return killed(*process, "stalled, then killed");
}

// While it starts; or when it has restored, and makes no step.
FaultyRun kill_before_its_first_step(const Training& training, Random& random) {
  const auto process = start(training, {.pause = milliseconds(5000)});
  if (below(random, 2) == 0) {
    process->runs_for(moment(random, training.start));
  } else if (has_begun(*process)) {
    process->runs_for(moment(random, milliseconds(200)));
  }
  process->send(SIGKILL);
  return finished(*process, "killed before its first step", {kKilled});
}

FaultyRun crash_of_itself(const Training& training, Random& random) {
  const bool aborts = below(random, 3) == 0;
  const uint64_t steps = 1 + below(random, 60);
  const auto process = start(training, {.crash = fmt::format("{}:{}", aborts ? "abort" : "write", steps)});
  FaultyRun run =
      finished(*process, aborts ? "aborted by itself" : "segmentation fault", {0, 128 + (aborts ? SIGABRT : SIGSEGV)});
  if (run.status == 0) run.fault = kNoFault;
  return run;
}

// A signal that comes when all is done, and nobody waits for it any more, kills.
FaultyRun run_until_signal(const Training& training, Random& random, int signal, const std::string& fault) {
  const auto process = start(training);
  const bool runs = has_begun(*process) && process->runs_for(moment(random, training.from_first_step()));
  if (runs) process->send(signal);
  FaultyRun run = finished(*process, runs ? fault : kNoFault, {0, kPreempted});
  if (run.reached >= training.steps) run.may_end_with.push_back(128 + signal);
  return run;
}
FaultyRun hang_up(const Training& training, Random& random) {
  return run_until_signal(training, random, SIGHUP, "SIGHUP");
}
FaultyRun terminate(const Training& training, Random& random) {
  return run_until_signal(training, random, SIGTERM, "SIGTERM");
}

FaultyRun run_without_stdio(const Training& training, Random& random) {
  const auto process = start(training, {.stdio = testing::Stdio::kClosed});
  if (process->runs_for(moment(random, training.length * 2))) process->send(SIGKILL);
  return finished(*process, "started with descriptors 0 to 2 closed", {0, kKilled});
}

}  // namespace

const std::vector<RunCase>& run_cases() {
  static const std::vector<RunCase> cases{
      {"files", 12, 1, "a fault of one of its file operations", run_with_file_fault},
      {"kill", 6, 1, "killed at a random moment", kill_at_a_moment},
      {"stall", 6, 1, "stopped for a while, then killed", stall_and_kill},
      {"early_kills", 2, 4, "killed before the first step, up to four times in a row", kill_before_its_first_step},
      {"crash", 2, 3, "a segmentation fault or an abort of its own, up to three times in a row", crash_of_itself},
      {"hangup", 1, 1, "SIGHUP, which must stop it", hang_up},
      {"terminate", 1, 1, "SIGTERM, which must stop it", terminate},
      {"closed_stdio", 2, 1, "descriptors 0 to 2 closed at its start", run_without_stdio},
      {"directory_back", 2, 1, "its directory goes away and comes back", run_with_directory_away_for_a_while},
      {"directory_gone", 2, 1, "its directory goes away until it is killed", run_with_directory_away_until_killed},
      {"lost_indices", 2, 1, "all index files are lost, which must keep it from starting", start_without_index_files},
  };
  return cases;
}

}  // namespace longhaul::soak
