#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/process.h"

namespace longhaul::soak {

using Random = std::mt19937_64;
using std::chrono::milliseconds;

// Anything up to `limit`, and not `limit` itself; 0 for 0.
uint64_t below(Random& random, uint64_t limit);
milliseconds moment(Random& random, milliseconds limit);

// Ends the soak: something is not as it should be.
[[noreturn]] void fail(const std::string& what);

struct Training {
  std::string program, directory;  // the program is exact_resume_program
  int64_t steps = 0, width = 0;
  milliseconds start{0}, length{0};  // how long a run needs to its first step, and to its end

  milliseconds from_first_step() const { return length - start; }
};

inline constexpr const char* kNoFault = "none";

// What one process of a training did, and what was done to it.
struct FaultyRun {
  std::string fault;                // the kind; kNoFault: it ended before; empty: it was not to be had, nothing was run
  std::vector<int> may_end_with;    // these statuses are as they should be
  int status = 0;                   // exit status, or 128 + signal
  std::optional<int64_t> restored;  // the step that it began with; nullopt: it did not come so far
  int64_t reached = 0;              // the last step that it told of
  std::string log;
};

// What the process is to do to itself: the environment of exact_resume_program.
struct Disturbance {
  std::string file_faults;  // LONGHAUL_FAULTS
  std::string crash;
  milliseconds pause{0};
  testing::Stdio stdio = testing::Stdio::kOpen;
};

std::unique_ptr<testing::Process> start(const Training& training, const Disturbance& disturbance = {});

// Whether it has come to its first step; false: it has ended before.
bool has_begun(testing::Process& process);

// The last step that it has told of.
int64_t reached(const testing::Process& process);

// Waits for its end.
FaultyRun finished(testing::Process& process, const std::string& fault, const std::vector<int>& may_end_with);

// Kills it, and waits. One that had come to its end before has not met the fault.
FaultyRun killed(testing::Process& process, const std::string& fault);

// Runs the program until it ends, undisturbed.
FaultyRun run_undisturbed(const Training& training);

// Runs it to its first step, and kills it at a moment thereafter.
FaultyRun run_and_kill(const Training& training, Random& random);

}  // namespace longhaul::soak
