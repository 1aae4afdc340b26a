#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/base/thread.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/signals/used_signals.h"
#include "longhaul/train/signals/write_signals.h"

namespace longhaul {

// "SIGTERM"; a real-time signal is "signal 34".
std::string signal_name(int signal);

// "SIGTERM: " and what follows from it, for the log: who reads it learns what a second one does.
std::string signal_notice(int signal, std::string_view consequence);

// What is done about signals. The functions are called on a thread, never two at a time; they must not throw.
struct SignalHandling {
  std::vector<int> stop_signals = stopping_signals();
  std::vector<int> other_signals;             // are told as often as they come, and end nothing
  std::function<void(int signal)> on_signal;  // one of them came
  std::function<void()> meanwhile;            // ten times a second; may be empty
};

// While it lives, signals request a stop instead of killing the process: the training ends after the step under way.
//
//   StopSignals signals(sv.coord());
//   sv.managed_session(...);
//
// The first stop signal is taken; another one, of whatever kind, has its default action, so that a second Ctrl-C ends a
// program that does not stop. What comes within a tenth of a second of the first is the same one, sent twice: as
// timeout(1) does it, to the process and to its group. A closed terminal's SIGHUP asks for the stop and counts as no
// first one: nobody presses it, a shell and the kernel both send it, and the session's SIGTERM may follow. Where SIGHUP
// was ignored before, as by nohup(1), it stays so. The stop holds: where preparing a session clears it, because the
// signal came early, it is requested again. The handlers only write a byte to a pipe; a thread ("lh-signals") reads it
// and calls. One at a time in a process: FailedPreconditionError otherwise. The destructor puts the handlers of before
// back. What clusters expect of a program beyond a stop: Preemption.
class StopSignals {
 public:
  explicit StopSignals(const Coordinator& coord, std::vector<int> signals = stopping_signals());
  // `on_signal` is called on the thread, once for each signal that came; it must not throw.
  explicit StopSignals(std::function<void(int signal)> on_signal, std::vector<int> signals = stopping_signals());
  explicit StopSignals(SignalHandling handling);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The first stop signal that came; 0: none.
  int signal_received() const;

 private:
  void open_pipe();
  void install();
  void restore();
  void watch() const;
  bool wait_for_byte() const;

  const WriteSignals write_signals_;
  const SignalHandling handling_;
  std::array<int, 2> pipe_{-1, -1};
  std::vector<std::pair<int, struct sigaction>> before_;  // the actions of before
  NamedThread watcher_;
};

}  // namespace longhaul
