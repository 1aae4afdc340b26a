#include "tests/soak/training.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <sstream>

#include "longhaul/base/error.h"

namespace longhaul::soak {
namespace {

constexpr std::chrono::seconds kEndless{300};  // a run that lasts longer hangs
constexpr int kOutput = 3;                     // a descriptor that testing::Stdio::kClosed leaves open

void set_environment(const char* name, const std::string& value) {
  if (value.empty()) {
    ::unsetenv(name);
  } else {
    ::setenv(name, value.c_str(), 1);
  }
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

}  // namespace

uint64_t below(Random& random, uint64_t limit) {
  return limit == 0 ? 0 : random() % limit;
}
milliseconds moment(Random& random, milliseconds limit) {
  return milliseconds(below(random, static_cast<uint64_t>(limit.count())));
}

void fail(const std::string& what) {
  throw DataLossError(what);
}

std::unique_ptr<testing::Process> start(const Training& training, const Disturbance& disturbance) {
  const bool is_closed = disturbance.stdio == testing::Stdio::kClosed;
  set_environment("LONGHAUL_FAULTS", disturbance.file_faults);
  set_environment("EXACT_RESUME_CRASH", disturbance.crash);
  set_environment("EXACT_RESUME_PAUSE", disturbance.pause.count() > 0 ? fmt::to_string(disturbance.pause.count()) : "");
  set_environment("EXACT_RESUME_OUTPUT", is_closed ? fmt::to_string(kOutput) : "");
  const std::vector<std::string> command{training.program, training.directory, std::to_string(training.steps),
                                         std::to_string(training.width)};
  return std::make_unique<testing::Process>(command, training.directory + ".output", disturbance.stdio);
}

bool has_begun(testing::Process& process) {
  return process.prints("\n", kEndless);
}

int64_t reached(const testing::Process& process) {
  FaultyRun run;
  read_output(run, process.output());
  return run.reached;
}

FaultyRun finished(testing::Process& process, const std::string& fault, const std::vector<int>& may_end_with) {
  FaultyRun run{.fault = fault, .may_end_with = may_end_with, .status = process.wait(kEndless)};
  run.log = process.errors();
  read_output(run, process.output());
  return run;
}

FaultyRun killed(testing::Process& process, const std::string& fault) {
  process.send(SIGKILL);
  FaultyRun run = finished(process, fault, {0, 128 + SIGKILL});
  if (run.status == 0) run.fault = kNoFault;
  return run;
}

FaultyRun run_undisturbed(const Training& training) {
  return finished(*start(training), kNoFault, {0});
}

FaultyRun run_and_kill(const Training& training, Random& random) {
  const auto process = start(training);
  if (has_begun(*process)) process->runs_for(moment(random, training.from_first_step()));
  return killed(*process, "killed after its first step");
}

}  // namespace longhaul::soak
