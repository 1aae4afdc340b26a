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

class Deadline;

struct SaveAttemptsOptions {
  int max_failed_saves = 0;       // this many in a row, retries included, end training; 0: no number does
  Seconds first_wait{1};          // after a failure, until the retry; doubled after each further one,
  Seconds longest_wait{60};       // up to this
  Seconds last_save_timeout{30};  // how long the save at the end is retried
  Clock* clock = &Clock::real();
};

// How the saves of a run have gone so far. Times are seconds since 1970.
struct SaveStatus {
  int consecutive_failures = 0;  // since the last success
  std::string last_error;        // of the last failure; empty: none
  double last_failure_time = 0;
  std::string last_prefix;  // of the last success; empty: none
  double last_success_time = 0;
};

// The handling of failed saves: they are counted, postponed, and retried while training continues, until too many fail
// in a row. Code that takes checkpoints (save_once.h) reports here; status() tells how saves are going. One object
// serves all saves of a run; if several hooks save to different places, their failures are counted together.
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

  // Call before failed(): whether to log this failure. Every failure is logged, except that a directory that stays away
  // is logged only the first, second, fourth, eighth, ... time.
  bool is_to_be_logged(const std::exception_ptr& error);

  // Returns how many have failed in a row, and sets the time of the retry.
  int failed(const std::exception_ptr& error);

  // Throws the error that ends training, if max_failed_saves have failed, with the message and the class of the last
  // one; UnknownError if that class would mean a clean end or a lost session.
  void raise_if_too_many() const;

  SaveStatus status() const;

  Seconds last_save_timeout() const { return options_.last_save_timeout; }

  // Whether the last one failed and the time of the retry has come. Without a failure it costs no system call.
  bool is_retry_due() const {
    const double due = retry_at_.load(std::memory_order_relaxed);
    return due != kNever && Seconds(due) <= options_.clock->now();
  }
  Seconds time_to_retry() const;  // 0: now, or nothing has failed

  // For the last save of a run: calls `attempt`, which returns whether it worked, until it does, or until another wait
  // would exceed `timeout` in total (absent: last_save_timeout), or the deadline, also one that is set during the wait.
  // Then throws as raise_if_too_many() does. An exception from `attempt` ends it.
  void insist(const std::function<bool()>& attempt, std::optional<Seconds> timeout = std::nullopt,
              const Deadline* deadline = nullptr) const;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Seconds wait_after(int failures) const;
  bool wait(Seconds time, const Deadline* deadline) const;
  [[noreturn]] void raise(const std::string& what) const;

  const SaveAttemptsOptions options_;
  std::atomic<double> retry_at_{kNever};  // on the clock

  mutable Mutex mutex_;
  SaveStatus status_ GUARDED_BY(mutex_);
  std::exception_ptr last_error_ GUARDED_BY(mutex_);
  int away_in_a_row_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
