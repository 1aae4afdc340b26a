#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "longhaul/io/process/child_signals.h"

namespace longhaul::console {

// A signal that was received.
struct ReceivedSignal {
  int number = 0;
  bool is_of_terminal = false;  // a key; the kernel has sent it to all programs in the foreground
};

// What is passed on to a program.
inline constexpr std::initializer_list<int> kForwardedSignals{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// Whether a process that passes it on must not start its program again: of all but SIGUSR2, which asks for a
// checkpoint.
constexpr bool is_stop_signal(int number) {
  return number != SIGUSR2 &&
         std::find(kForwardedSignals.begin(), kForwardedSignals.end(), number) != kForwardedSignals.end();
}

// While it exists, these signals and the ends of children wake wait() (io/process/child_signals.h). For a process
// with one thread.
class ForwardedSignals {
 public:
  // Returns the next signal; nullopt: a child has ended, or that time has passed. Without a time, it has none.
  std::optional<ReceivedSignal> wait(std::optional<Seconds> timeout = std::nullopt) const;

  const sigset_t& mask_before() const { return signals_.mask_before(); }  // what children are to have

 private:
  const ChildSignals signals_{kForwardedSignals};
};

}  // namespace longhaul::console
