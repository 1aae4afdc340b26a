#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// The value of a variable of the process's environment; nullptr: it has none.
using VariableReader = std::function<const char*(const char* name)>;
VariableReader process_variables();

// How long a program that is told to end has until it is killed, as far as that can be known. What comes first counts:
//   - what the program says;
//   - LONGHAUL_PREEMPTION_GRACE, in seconds;
//   - for signals other than SIGTERM and SIGHUP, SLURM_JOB_END_TIME, in seconds since 1970: Slurm sends them some time
//     before the end of the job (its option signal). Its SIGTERM means KillWait or GraceTime, which it tells nobody: 30
//     s unless the cluster has another one;
//   - 30 s, which is also what Kubernetes gives. A pod's terminationGracePeriodSeconds is in no variable, and not among
//     the fields of the downward API: a pod that has another one says so in LONGHAUL_PREEMPTION_GRACE.
class PreemptionGrace {
 public:
  static constexpr Seconds kDefault{30};

  // InvalidArgumentError: the variable, or what the program says, is no number of seconds from 0 on.
  explicit PreemptionGrace(std::optional<Seconds> told = std::nullopt,
                           const VariableReader& variables = process_variables());

  struct Period {
    Seconds length;
    std::string source;  // who says so
  };
  // From a signal on that comes at this time, in seconds since 1970. 0 as the signal: no signal, only a request.
  Period after(int signal, double wall_time) const;

 private:
  std::optional<Period> fixed_;
  std::optional<double> job_end_;  // in seconds since 1970
  bool is_in_pod_ = false;
};

}  // namespace longhaul
