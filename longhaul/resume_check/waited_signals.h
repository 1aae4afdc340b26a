#pragma once

#include <signal.h>

#include "longhaul/base/error.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// Somebody wants this process to end: by SIGINT, SIGTERM or SIGHUP.
class InterruptedError : public CancelledError {
 public:
  explicit InterruptedError(int signal);
  int signal() const { return signal_; }

 private:
  int signal_;
};

// While it exists, the ends of child processes and the signals that end this one wake wait(), and do nothing else. A
// signal that was ignored before, such as SIGHUP under nohup, stays ignored. What children leave behind becomes a child
// of this process too, so that it can be waited for (PR_SET_CHILD_SUBREAPER).
//
// For a process with one thread: others would get the signals. The destructor puts everything back.
class WaitedSignals {
 public:
  WaitedSignals();
  ~WaitedSignals();
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  // Returns when a child has ended, or after that time, whichever is first. InterruptedError: this process is to end.
  void wait(Seconds timeout) const;

  const sigset_t& mask_before() const { return before_; }  // what children are to have

 private:
  sigset_t waited_{};
  sigset_t before_{};
  struct sigaction child_before_{};
  int subreaper_before_ = 0;
};

}  // namespace longhaul
