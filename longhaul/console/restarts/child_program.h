#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/console/restarts/forwarded_signals.h"
#include "longhaul/console/restarts/restart_policy.h"

namespace longhaul::console {

// A program that runs as a child of this process, with its descriptors, in its process group, so that the keys of a
// terminal reach it. If this process dies, whatever kills it, the program gets SIGTERM. One thread may use it: that of
// the ForwardedSignals, which must outlive it.
class ChildProgram {
 public:
  // NotFoundError, PermissionDeniedError, ...: it cannot be started; the message has its name.
  ChildProgram(const ForwardedSignals& signals, const std::vector<std::string>& command);

  pid_t pid() const { return pid_; }
  void send(int signal) const;

  // Reaps all children that have ended, this and what others left behind. Once this has ended, returns how.
  std::optional<ProgramEnd> reap();

 private:
  pid_t pid_ = -1;
  std::optional<ProgramEnd> end_;
};

// The children of this process, by /proc.
std::vector<pid_t> children_of_this_process();

// Ends what a program has left behind: SIGTERM, and after `grace` SIGKILL. Reaps it. Signals that come meanwhile are
// passed to `on_signal`.
void end_leftovers(const ForwardedSignals& signals, Seconds grace,
                   const std::function<void(const ReceivedSignal&)>& on_signal);

}  // namespace longhaul::console
