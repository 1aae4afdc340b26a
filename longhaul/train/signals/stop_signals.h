#pragma once

#include <sys/types.h>

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

// "SIGTERM: " and the consequence, for the log. It also says what a second signal does.
std::string signal_notice(int signal, std::string_view consequence);

// Whether SIGTERM would end this process by its default action, while no StopSignals or Preemption exists that could
// turn it into a stop. Any thread.
bool is_ended_by_sigterm();

// How signals are handled. `on_signal` is called on a thread, one call at a time, and must not throw.
struct SignalHandling {
  std::vector<int> stop_signals = stopping_signals();
  std::vector<int> other_signals{};             // reported each time they arrive; they do not stop training
  std::function<void(int signal)> on_signal{};  // called for a signal of either list
  const char* user = "StopSignals";             // the class that the program uses, for error messages; a literal
};

// While a StopSignals exists, signals request a stop instead of killing the process: training ends after the step under
// way.
//
//   StopSignals signals(sv.coord());
//   sv.managed_session(train);
//
// The first stop signal requests the stop. A second one, of whatever kind, has its default action, so that a second
// Ctrl-C ends a program that does not stop. A signal within a tenth of a second of the first counts as the same signal,
// because timeout(1) sends it twice, to the process and to its group. The SIGHUP of a closed terminal requests the stop
// but does not count as the first signal, because a shell and the kernel both send it, and the session's SIGTERM may
// follow. If SIGHUP was ignored before, as under nohup(1), it stays ignored. The stop persists while this object
// exists: preparing a session does not clear the stop of an earlier signal. The handlers only write a byte to a pipe; a
// thread ("lh-signals") sleeps until it can read the byte, and makes the calls. A process can have only one StopSignals
// or Preemption at a time: FailedPreconditionError otherwise. The destructor restores the previous handlers. A signal
// to a forked child does not affect this process: a stop signal ends the child, other signals do nothing there. The
// child may have a StopSignals of its own meanwhile. For programs on a cluster, see Preemption.
class StopSignals {
 public:
  explicit StopSignals(const Coordinator& coord, std::vector<int> signals = stopping_signals());
  // `on_signal` is called on that thread, once for each signal. It must not throw.
  explicit StopSignals(std::function<void(int signal)> on_signal, std::vector<int> signals = stopping_signals());
  explicit StopSignals(SignalHandling handling);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The first stop signal that arrived; 0: none.
  int signal_received() const;

 private:
  void leave_to_parent();
  void open_pipe();
  void close_pipe();
  void close_ends();
  void install();
  void restore();
  void watch() const;
  void end_watch() const;

  const WriteSignals write_signals_;
  const SignalHandling handling_;
  const pid_t process_;  // whose object this is: a forked child inherits it
  pid_t parent_ = 0;     // whose object this process has inherited; 0: none
  std::array<int, 2> pipe_{-1, -1};
  std::vector<std::pair<int, struct sigaction>> before_;  // the previous actions
  NamedThread watcher_;
};

}  // namespace longhaul
