#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/resume_check/waited_signals.h"

namespace longhaul {

// How a program ended.
struct ProgramEnd {
  int status = 0;  // the exit status, if it was not a signal
  int signal = 0;  // that ended it; 0: none did

  bool is_success() const { return status == 0 && signal == 0; }
  std::string to_string() const;  // "exit status 75", "signal 9 (Killed)"
};

struct ProgramToStart {
  std::vector<std::string> command{};      // found in PATH, unless it has a '/'
  std::vector<std::string> environment{};  // "NAME=VALUE", besides this process's own
  std::string output_path{};               // for what it writes to stdout and stderr; appended
};

// A program that runs as a child of this process, in a process group of its own, reads nothing (/dev/null), and ends
// with this process, whatever ends that (PR_SET_PDEATHSIG). What it starts itself is in its group, and ends with it.
//
// One thread may use it: that of the WaitedSignals, and it must not end while the program runs.
class StartedProgram {
 public:
  // InvalidArgumentError: the program is not there, or cannot be started; the message has its name.
  StartedProgram(const WaitedSignals& signals, const ProgramToStart& program);
  ~StartedProgram();  // kills it, if it still runs
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  // Sends the signal to the program and all that it started.
  void send(int signal) const;

  // Waits until it has ended, and nothing of its group is left, or until that time (of Clock::real()).
  // nullopt: it still runs. InterruptedError: this process is to end.
  std::optional<ProgramEnd> wait_until(Seconds deadline);

 private:
  void kill_group_of_ended();

  const WaitedSignals& signals_;
  pid_t pid_ = -1;
  std::optional<ProgramEnd> end_;
};

}  // namespace longhaul
