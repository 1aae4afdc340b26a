#pragma once

#include <atomic>
#include <memory>

#include "longhaul/base/mutex.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {

// The Supervisor of a Trainer, which its first run makes, and the stops that are requested before it is there. One
// thread calls, and any thread request_stop().
class RunSupervisor {
 public:
  void make(const SupervisorOptions& options) EXCLUDES(mutex_) {
    auto made = std::make_unique<Supervisor>(options);
    MutexLock lock(mutex_);
    supervisor_ = std::move(made);
  }
  Supervisor* get() const { return supervisor_.get(); }  // null: not made yet
  Supervisor* operator->() const { return supervisor_.get(); }
  Supervisor& operator*() const { return *supervisor_; }
  explicit operator bool() const { return supervisor_ != nullptr; }

  void request_stop() EXCLUDES(mutex_) {
    is_stop_wanted_ = true;
    MutexLock lock(mutex_);
    if (supervisor_) supervisor_->request_stop();
  }
  // A session that begins clears the stop of the one before, so what was requested since then is requested again.
  void session_begins() {
    if (is_stop_wanted_) supervisor_->request_stop();
  }
  void run_ends() { is_stop_wanted_ = false; }

 private:
  Mutex mutex_;  // held to make the Supervisor, and by threads that are not the run's
  std::unique_ptr<Supervisor> supervisor_;
  std::atomic<bool> is_stop_wanted_{false};
};

}  // namespace longhaul
