#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

struct SaveAttemptsOptions {
  int max_failed_saves = 0;       // so many in a row, those tried again included, end the training; 0: none do
  Seconds first_wait{1};          // after a failure, until it is tried again; after each further one twice as long,
  Seconds longest_wait{60};       // but no longer than this
  Seconds last_save_timeout{30};  // for how long the save at the end of a training is tried again
  Clock* clock = &Clock::real();
};

// How the saves of a training went so far. Times are seconds since 1970.
struct SaveStatus {
  int consecutive_failures = 0;  // since the last that worked
  std::string last_error;        // of the last that failed; empty: none has
  double last_failure_time = 0;
  std::string last_prefix;  // of the last that worked; empty: none has
  double last_success_time = 0;
};

// What becomes of saves that fail: they are counted, put off, and tried again, and the training goes on, unless so many
// fail in a row that it is told to end. Who takes checkpoints (save_once.h) reports here; who wants to know how it goes
// asks status(). One for all saves of a training; where several hooks save to different places, they count in one row.
//
//   auto saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.max_failed_saves = 20});
//   monitored_training_session({.graph = &graph, .checkpoint_dir = "runs/demo", .saves = saves}, train);
//   ... on any thread: if (saves->status().consecutive_failures > 3) call_somebody(saves->status().last_error);
//
// Any thread.
class SaveAttempts {
 public:
  explicit SaveAttempts(const SaveAttemptsOptions& options = {}) : options_(options) {}

  // Returns how many had failed in a row before.
  int succeeded(const std::string& prefix);

  // Before failed(): whether the log is to tell of this failure. It is told of each, but of a directory that stays away
  // only the first, second, fourth, eighth, ... time.
  bool is_to_be_logged(const std::exception_ptr& error);

  // Returns how many failed in a row by now, and sets when to try again.
  int failed(const std::exception_ptr& error);

  // The error that ends the training, if max_failed_saves have failed: what the last one said. Its class is the last
  // one's, UnknownError where that would be taken for a clean end or for a session that is lost.
  void raise_if_too_many() const;

  SaveStatus status() const;

  Seconds last_save_timeout() const { return options_.last_save_timeout; }

  // Since the last one failed, the time to try again has come. Without a failure it costs no system call.
  bool is_retry_due() const {
    const double due = retry_at_.load(std::memory_order_relaxed);
    return due != kNever && Seconds(due) <= options_.clock->now();
  }
  Seconds time_to_retry() const;  // 0: now, or nothing has failed

  // The last save of a training: calls `attempt`, which returns whether it worked, until it does, or until waiting
  // again would be longer than `timeout` in all (absent: last_save_timeout). Then throws as raise_if_too_many() does.
  // What `attempt` throws ends it.
  void insist(const std::function<bool()>& attempt, std::optional<Seconds> timeout = std::nullopt) const;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Seconds wait_after(int failures) const;
  void wait(Seconds time) const;
  [[noreturn]] void raise(const std::string& what) const;

  const SaveAttemptsOptions options_;
  std::atomic<double> retry_at_{kNever};  // on the clock

  mutable Mutex mutex_;
  SaveStatus status_ GUARDED_BY(mutex_);
  std::exception_ptr last_error_ GUARDED_BY(mutex_);
  int away_in_a_row_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
