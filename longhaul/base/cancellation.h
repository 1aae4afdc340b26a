#pragma once

#include <functional>
#include <map>
#include <string>

#include "longhaul/base/mutex.h"

namespace longhaul {

// Ends the waits inside a piece of work (a session's runs) from outside. Any thread may call any method.
class Cancellation {
 public:
  // Permanent. Waits end with CancelledError, with the first caller's `why`.
  void cancel(const std::string& why) EXCLUDES(mutex_);
  bool cancelled() const EXCLUDES(mutex_);
  // CancelledError: it was cancelled.
  void check() const EXCLUDES(mutex_);

  // Calls `wake` once when the work is cancelled, on the cancelling thread; at once, if it was already cancelled.
  // `wake` is not called after the destructor. Construct and destroy a Watch without holding the locks that `wake`
  // takes.
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

// How long an operation may wait, as set for the work that it belongs to.
struct WaitLimits {
  Seconds deadline{0};  // on the monotonic clock; 0: none
  Cancellation* cancellation = nullptr;
};

}  // namespace longhaul
