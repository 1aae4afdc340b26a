#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "longhaul/base/mutex.h"

namespace longhaul {

class Clock;

// Ends the waits inside a piece of work (a session's runs) from outside. Any thread may call any method.
class Cancellation {
 public:
  Cancellation() = default;
  // The cancellation of a part of other work, such as a session's run. It is cancelled together with `whole` (the
  // session's cancellation) and with `other` (that of the run's caller), unless that is null. Both must outlive it.
  explicit Cancellation(Cancellation* whole, Cancellation* other = nullptr);
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // Ends the waits with CancelledError, whose message is the first caller's `why`. Cannot be undone.
  void cancel(const std::string& why) EXCLUDES(mutex_) { end(why, /*aborted=*/false); }
  // The same with AbortedError: something that the work uses is gone, and a new session can continue.
  void abort(const std::string& why) EXCLUDES(mutex_) { end(why, /*aborted=*/true); }
  bool cancelled() const EXCLUDES(mutex_);
  // CancelledError, AbortedError: it was cancelled, or aborted.
  void check() const EXCLUDES(mutex_);
  // AbortedError: it was aborted. That it was cancelled is not an error here: for work that must be finished.
  void check_aborted() const EXCLUDES(mutex_);

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
  std::unique_ptr<Watch> end_with(Cancellation* other);
  void end(const std::string& why, bool aborted) EXCLUDES(mutex_);

  mutable Mutex mutex_;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool aborted_ GUARDED_BY(mutex_) = false;
  std::string why_ GUARDED_BY(mutex_);
  int next_id_ GUARDED_BY(mutex_) = 0;
  std::map<int, std::function<void()>> watches_ GUARDED_BY(mutex_);
  std::unique_ptr<Watch> end_of_whole_, end_of_other_;  // destroyed first
};

// How long an operation may wait; set for the work to which it belongs.
struct WaitLimits {
  Seconds deadline{0};  // on the monotonic clock; 0: none
  Cancellation* cancellation = nullptr;
  Clock* clock = nullptr;  // of a wait on a queue, if not the machine's
};

}  // namespace longhaul
