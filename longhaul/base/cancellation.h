#pragma once

#include <functional>
#include <map>
#include <string>

#include "longhaul/base/mutex.h"

namespace longhaul {

// Ends the waits inside a piece of work (a session's runs) from outside. Any thread may call any method.
class Cancellation {
 public:
  // Ends the waits with CancelledError, whose message is the first caller's `why`. Cannot be undone.
  void cancel(const std::string& why) EXCLUDES(mutex_);
  bool cancelled() const EXCLUDES(mutex_);
  // CancelledError: it was cancelled.
  void check() const EXCLUDES(mutex_);

  // Calls `wake` once, on the cancelling thread, when the work is cancelled; if it is already cancelled, the
  // constructor calls it. `wake` is not called after the destructor. Construct and destroy a Watch without holding the
  // locks that `wake` takes.
  class Watch {
   public:
    Watch(Cancellation& cancellation, std::function<void()> wake);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Cancellation& cancellation_;
    int id_ = 0;
  };

 private:
  mutable Mutex mutex_;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  std::string why_ GUARDED_BY(mutex_);
  int next_id_ GUARDED_BY(mutex_) = 0;
  std::map<int, std::function<void()>> watches_ GUARDED_BY(mutex_);
};

// How long an operation may wait; set for the work to which it belongs.
struct WaitLimits {
  Seconds deadline{0};  // on the monotonic clock; 0: none
  Cancellation* cancellation = nullptr;
};

}  // namespace longhaul
