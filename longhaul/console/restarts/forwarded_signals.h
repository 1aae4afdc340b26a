#pragma once

#include <signal.h>

#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul::console {

// A signal that was received.
struct ReceivedSignal {
  int number = 0;
  bool is_of_terminal = false;  // a key; the kernel has sent it to all programs in the foreground
};

// Whether a process that passes it on must not start its program again: SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1.
bool is_stop_signal(int number);

// While it exists, the signals that one passes on to a program, those above and SIGUSR2, and the ends of children wake
// wait(), and do nothing else, in the first process of a container too. A signal that was ignored before, such as
// SIGHUP under nohup, stays ignored. What children leave behind becomes a child of this process
// (PR_SET_CHILD_SUBREAPER).
//
// For a process with one thread: others would get the signals. The destructor puts everything back.
class ForwardedSignals {
 public:
  ForwardedSignals();
  ~ForwardedSignals();
  ForwardedSignals(const ForwardedSignals&) = delete;
  ForwardedSignals& operator=(const ForwardedSignals&) = delete;

  // Returns the next signal; nullopt: a child has ended, or that time has passed. Without a time, it has none.
  std::optional<ReceivedSignal> wait(std::optional<Seconds> timeout = std::nullopt) const;

  const sigset_t& mask_before() const { return before_; }  // what children are to have

 private:
  sigset_t waited_{};
  sigset_t before_{};
  struct sigaction child_before_{};
  int subreaper_before_ = 0;
};

}  // namespace longhaul::console
