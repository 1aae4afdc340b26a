#pragma once

#include "longhaul/base/error.h"
#include "longhaul/io/process/child_signals.h"

namespace longhaul {

// Somebody wants this process to end: by SIGINT, SIGTERM or SIGHUP.
class InterruptedError : public CancelledError {
 public:
  explicit InterruptedError(int signal);
  int signal() const { return signal_; }

 private:
  int signal_;
};

// While it exists, the ends of child processes and the signals that end this one wake wait()
// (io/process/child_signals.h). For a process with one thread.
class WaitedSignals {
 public:
  // Returns when a child has ended, or after that time, whichever is first. InterruptedError: this process is to end.
  void wait(Seconds timeout) const;

  const sigset_t& mask_before() const { return signals_.mask_before(); }  // what children are to have

 private:
  const ChildSignals signals_{SIGINT, SIGTERM, SIGHUP};
};

}  // namespace longhaul
