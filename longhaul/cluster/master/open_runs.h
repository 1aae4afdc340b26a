#pragma once

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// The runs of a session that are under way, and whether it takes more. Any thread.
class OpenRuns {
 public:
  class Run {
   public:
    explicit Run(OpenRuns& runs) : runs_(runs) {}
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run() { runs_.end(); }

   private:
    OpenRuns& runs_;
  };

  // `session` is cancelled when the session is lost.
  OpenRuns(Clock& clock, Cancellation& session) : clock_(clock), session_(session) {}

  // A run is under way as long as the returned value lives. FailedPreconditionError: the session was closed. Throws
  // what the session was cancelled with.
  Run begin() EXCLUDES(mutex_);
  bool close() EXCLUDES(mutex_);                      // false: it was already
  bool wait_for_end(Seconds until) EXCLUDES(mutex_);  // false: a run has not ended

 private:
  void end() EXCLUDES(mutex_);

  Clock& clock_;
  Cancellation& session_;
  Mutex mutex_;
  CondVar changed_;
  bool is_closed_ GUARDED_BY(mutex_) = false;
  int running_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
