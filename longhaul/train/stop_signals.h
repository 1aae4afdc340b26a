#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <vector>

#include "longhaul/base/thread.h"
#include "longhaul/train/coordinator.h"

namespace longhaul {

// While it lives, signals request a stop instead of killing the process: the training ends after the step under way.
//
//   StopSignals signals(sv.coord());
//   sv.managed_session(...);
//   return signals.signal_received() == SIGTERM ? 75 : 0;
//
// The first signal of a kind is taken; from then on that kind has its default action again, so that a second Ctrl-C
// ends a program that does not stop. The stop holds: where preparing a session clears it, because the signal came
// early, it is requested again. The handlers only write a byte to a pipe; a thread ("lh-signals") reads it and calls.
// One at a time in a process: FailedPreconditionError otherwise. The destructor puts the handlers of before back.
class StopSignals {
 public:
  explicit StopSignals(const Coordinator& coord, std::vector<int> signals = {SIGINT, SIGTERM});
  // `on_signal` is called on the thread, once for each signal that came; it must not throw.
  explicit StopSignals(std::function<void(int signal)> on_signal, std::vector<int> signals = {SIGINT, SIGTERM});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The first that came; 0: none.
  int signal_received() const;

 private:
  void open_pipe();
  void install();
  void restore();
  StopSignals(std::function<void(int signal)> on_signal, std::function<void()> after_signal, std::vector<int> signals);
  void watch() const;
  bool wait_for_byte() const;

  const std::function<void(int signal)> on_signal_;
  const std::function<void()> after_signal_;  // called again and again once a signal came; may be empty
  const std::vector<int> signals_;
  std::array<int, 2> pipe_{-1, -1};
  std::vector<struct sigaction> before_;  // in the order of signals_
  NamedThread watcher_;
};

}  // namespace longhaul
