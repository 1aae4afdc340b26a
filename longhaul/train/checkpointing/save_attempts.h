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

// Between a failed save and its retry, whatever the options say: a disk that is full is not tried all the time.
inline constexpr Seconds kShortestRetryWait{0.1};

struct SaveAttemptsOptions {
  int max_failed_saves = 0;       // after this many in a row, retries included, training ends; 0: never
  Seconds first_wait{1};          // from a failure to the retry; doubled after each further failure,
  Seconds longest_wait{60};       // up to this; each wait is kShortestRetryWait at least
  Seconds last_save_timeout{30};  // how long the final save is retried
  Clock* clock = &Clock::real();
};

// InvalidArgumentError: a number is negative or NaN. `name` is that of the options, for the message.
void check_save_attempts(const SaveAttemptsOptions& options, const std::string& name);

// The outcome of a run's saves so far. Times are in seconds since 1970.
struct SaveStatus {
  int consecutive_failures = 0;  // since the last success
  std::string last_error;        // of the last failure; empty: none
  double last_failure_time = 0;
  std::string last_prefix;  // of the last success; empty: none
  double last_success_time = 0;
  int64_t successes = 0, failures = 0;  // in all
};

// Handles failed saves: it counts them and schedules retries, while training continues, until too many fail in a row.
// Code that takes checkpoints (save_once.h) reports to it; status() returns the state of the saves. One object serves
// all saves of a run. If several hooks save to different places, their failures are counted together.
//
//   auto saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.max_failed_saves = 20});
//   monitored_training_session({.graph = &graph, .checkpoint_dir = "runs/demo", .failures = {.saves = saves}}, train);
//   if (saves->status().consecutive_failures > 3) call_somebody(saves->status().last_error);  // on any thread
//
// Any thread may call.
class SaveAttempts {
 public:
  // InvalidArgumentError: see check_save_attempts().
  explicit SaveAttempts(const SaveAttemptsOptions& options = {});

  // Returns the number of consecutive failures before this success.
  int succeeded(const std::string& prefix);

  // Returns whether to log this failure. Call it before failed(). Every failure is logged, except that a directory that
  // stays away is logged only the first, second, fourth, eighth, ... time.
  bool is_to_be_logged(const std::exception_ptr& error);

  // Sets the time of the retry. Returns the number of consecutive failures.
  int failed(const std::exception_ptr& error);

  // If max_failed_saves have failed, throws the error that ends training. It has the message and the class of the last
  // failure, or is an UnknownError if that class would mean a clean end or a lost session.
  void raise_if_too_many() const;

  SaveStatus status() const;

  Seconds last_save_timeout() const { return options_.last_save_timeout; }

  // Whether the last save failed and it is time to retry. Without a failure, makes no system call.
  bool is_retry_due() const {
    const double due = retry_at_.load(std::memory_order_relaxed);
    return due != kNever && Seconds(due) <= options_.clock->now();
  }
  Seconds time_to_retry() const;  // 0: now, or no save has failed

  // For the last save of a run: calls `attempt` until it returns true. Gives up when another wait would exceed
  // `timeout` in total (absent: last_save_timeout), or the deadline, even if that is set during the wait; then throws
  // what raise_if_too_many() throws. An exception from `attempt` is not caught.
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
