#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>

#include "longhaul/base/mutex.h"

namespace longhaul {

// While it exists, these signals and the ends of child processes wake wait(), and do nothing else, in the first process
// of a container too. A signal that was ignored before, such as SIGHUP under nohup, stays ignored. What children leave
// behind becomes a child of this process, so that it can be waited for (PR_SET_CHILD_SUBREAPER).
//
// For a process with one thread: others would get the signals. The destructor puts everything back.
class ChildSignals {
 public:
  explicit ChildSignals(std::initializer_list<int> signals);
  ~ChildSignals();
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;

  // Returns the next of the signals; nullopt: a child has ended, or that time, an hour at most, has passed. Without a
  // time, it has none.
  std::optional<siginfo_t> wait(std::optional<Seconds> timeout) const;

  const sigset_t& mask_before() const { return before_; }  // what children are to have

 private:
  sigset_t waited_{};
  sigset_t before_{};
  struct sigaction child_before_{};
  int subreaper_before_ = 0;
};

// In a parent: the error number that a child writes to this pipe if its exec fails; 0: it succeeded, which closed the
// pipe.
int exec_error(int pipe);

}  // namespace longhaul
