#include "longhaul/train/coordination/chief_lock.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "longhaul/base/deadline.h"
#include "longhaul/base/log.h"
#include "longhaul/train/coordination/looper_thread.h"

namespace longhaul {
namespace {

constexpr int kBeatsInLimit = 6;

}  // namespace

void check_lock(const LockOptions& options, std::string_view name) {
  if (!options.lock || options.lease_secs >= kShortestLease) return;
  throw InvalidArgumentError(fmt::format("{}.lease_secs is {:g} s: it must be {:g} s or more, for {} heartbeats", name,
                                         options.lease_secs.count(), kShortestLease.count(), kBeatsInLimit));
}

class ChiefLock::Heart : public LooperThread {
 public:
  Heart(const Coordinator& coord, const std::string& directory, const DirectoryLockOptions& options,
        std::function<void(const std::exception_ptr&)> on_lost)
      : LooperThread(coord, options.limit / kBeatsInLimit, {}, "lh-chief"),  // wait: a heart beats
        lock_(directory, options),
        on_lost_(std::move(on_lost)) {}

  void raise_if_lost() const {
    if (is_lost_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
  }

 protected:
  void run_loop() override {
    if (!std::exchange(has_begun_, true)) return;  // the record is new
    try {
      lock_.beat();
      if (std::exchange(is_failing_, false)) log_warning("the heartbeat works again");
    } catch (const DirectoryLostError&) {
      lose(std::current_exception());
      throw;
    } catch (...) {  // also of odd types, from a program's file system
      if (!std::exchange(is_failing_, true)) {
        log_warning("the heartbeat failed and is retried: {}", message_of(std::current_exception()));
      }
    }
  }

 private:
  void lose(const std::exception_ptr& error) {
    log_error("{}", message_of(error));
    error_ = error;
    is_lost_.store(true, std::memory_order_release);
    if (on_lost_) on_lost_(error);
  }

  DirectoryLock lock_;
  const std::function<void(const std::exception_ptr&)> on_lost_;
  std::atomic<bool> is_lost_{false};
  std::exception_ptr error_;                     // written before is_lost_
  bool has_begun_ = false, is_failing_ = false;  // the thread's
};

ChiefLock::ChiefLock(const std::string& directory, const DirectoryLockOptions& options,
                     std::function<void(const std::exception_ptr&)> on_lost, const Deadline* deadline)
    : coord_({.clock = options.clock}), limit_(options.limit), deadline_(deadline) {
  options.files->make_directories(strip_file_scheme(directory));
  heart_ = std::make_shared<Heart>(coord_, directory, options, std::move(on_lost));
  heart_->start();
}

ChiefLock::~ChiefLock() {
  constexpr Seconds kHeartbeat{1};  // time enough for one that does not hang, even if the deadline is over
  try {
    const Deadline::Notice notice(deadline_, [this] { coord_.notify(); });
    coord_.request_stop();
    coord_.join({.stop_grace = limit_,
                 .ignore_live_threads = true,
                 .give_up_at = half_time(deadline_, coord_.clock(), kHeartbeat)});
  } catch (...) {
    log_debug("the heartbeat thread ended with: {}", message_of(std::current_exception()));
  }
}

void ChiefLock::raise_if_lost() const {
  heart_->raise_if_lost();
}

}  // namespace longhaul
