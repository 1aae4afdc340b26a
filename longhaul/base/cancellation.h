#pragma once

#include <functional>
#include <map>
#include <string>

#include "longhaul/base/mutex.h"

namespace longhaul {

// Ends the waits inside some work (a session's runs) from outside. Any thread may call any method.
class Cancellation {
 public:
  // For good. What waits gets CancelledError with the first caller's `why`.
  void cancel(const std::string& why) EXCLUDES(mutex_);
  bool cancelled() const EXCLUDES(mutex_);
  // CancelledError: it was cancelled.
  void check() const EXCLUDES(mutex_);

  // Has `wake` called once when the work is cancelled, on the thread that cancels it (at once, if it was already). Not
  // after the destructor. Made and destroyed without the locks that `wake` takes.
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

// How long the work that an operation belongs to may wait.
struct WaitLimits {
  Seconds deadline{0};  // of the monotonic clock; 0: none
  Cancellation* cancellation = nullptr;
};

}  // namespace longhaul
