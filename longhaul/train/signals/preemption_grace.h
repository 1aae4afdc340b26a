#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// Reads an environment variable of the process; nullptr: not set.
using VariableReader = std::function<const char*(const char* name)>;
VariableReader process_variables();

// The time between the stop signal and the kill, as far as it can be known. It is the first of these that applies:
//   - the program's own value;
//   - LONGHAUL_PREEMPTION_GRACE, in seconds;
//   - for signals other than SIGTERM and SIGHUP, SLURM_JOB_END_TIME, in seconds since 1970: Slurm sends these some time
//     before the end of the job (its option signal). After its SIGTERM, KillWait or GraceTime applies, which Slurm does
//     not announce: 30 s unless configured otherwise;
//   - 30 s, which is also what Kubernetes gives. A pod's terminationGracePeriodSeconds is not available in a variable
//     or through the downward API, so a pod with another value must set LONGHAUL_PREEMPTION_GRACE.
class PreemptionGrace {
 public:
  static constexpr Seconds kDefault{30};

  // InvalidArgumentError: a variable, or the program's value, is not a finite number of seconds that is 0 or more.
  explicit PreemptionGrace(std::optional<Seconds> told = std::nullopt,
                           const VariableReader& variables = process_variables());

  struct Period {
    Seconds length;
    std::string source;  // of the length, for messages
  };
  // The period after a signal that arrives at `wall_time`, in seconds since 1970. Signal 0: a request without a signal.
  Period after(int signal, double wall_time) const;

 private:
  std::optional<Period> fixed_;
  std::optional<double> job_end_;  // in seconds since 1970
  bool is_in_pod_ = false;
};

}  // namespace longhaul
