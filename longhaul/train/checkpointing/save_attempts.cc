#include "longhaul/train/checkpointing/save_attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/deadline.h"
#include "longhaul/base/error.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/coordination/checked_options.h"
#include "longhaul/train/coordination/lost_session.h"

namespace longhaul {
namespace {

// A failure to save is neither the end of the input nor the loss of a session.
Code code_of_failure(const std::exception_ptr& error) {
  const Code code = code_of(error);
  const bool has_another_meaning = is_lost_session(code) || code == Code::kOutOfRange || code == Code::kCancelled;
  return has_another_meaning ? Code::kUnknown : code;
}

bool is_away(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const DirectoryAwayError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void check_save_attempts(const SaveAttemptsOptions& options, const std::string& name) {
  check_not_negative(name + ".max_failed_saves", options.max_failed_saves);
  check_not_negative(name + ".first_wait", options.first_wait);
  check_not_negative(name + ".longest_wait", options.longest_wait);
  check_not_negative(name + ".last_save_timeout", options.last_save_timeout);
}

SaveAttempts::SaveAttempts(const SaveAttemptsOptions& options) : options_(options) {
  check_save_attempts(options_, "saves");
}

int SaveAttempts::succeeded(const std::string& prefix) {
  MutexLock lock(mutex_);
  retry_at_ = kNever;
  away_in_a_row_ = 0;
  status_.last_prefix = prefix;
  status_.last_success_time = options_.clock->wall_time();
  ++status_.successes;
  return std::exchange(status_.consecutive_failures, 0);
}

bool SaveAttempts::is_to_be_logged(const std::exception_ptr& error) {
  MutexLock lock(mutex_);
  away_in_a_row_ = is_away(error) ? away_in_a_row_ + 1 : 0;
  return (away_in_a_row_ & (away_in_a_row_ - 1)) == 0;
}

int SaveAttempts::failed(const std::exception_ptr& error) {
  MutexLock lock(mutex_);
  last_error_ = error;
  status_.last_error = message_of(error);
  status_.last_failure_time = options_.clock->wall_time();
  ++status_.consecutive_failures;
  ++status_.failures;
  retry_at_ = (options_.clock->now() + wait_after(status_.consecutive_failures)).count();
  return status_.consecutive_failures;
}

void SaveAttempts::raise_if_too_many() const {
  const int failures = status().consecutive_failures;
  if (options_.max_failed_saves <= 0 || failures < options_.max_failed_saves) return;
  raise(fmt::format("{} saves in a row failed (max_failed_saves = {}), the last one with", failures,
                    options_.max_failed_saves));
}

void SaveAttempts::raise(const std::string& what) const {
  MutexLock lock(mutex_);
  throw_error(code_of_failure(last_error_), fmt::format("{}: {}", what, status_.last_error));
}

SaveStatus SaveAttempts::status() const {
  MutexLock lock(mutex_);
  return status_;
}

Seconds SaveAttempts::time_to_retry() const {
  const double due = retry_at_;
  return due == kNever ? Seconds{0} : std::max(Seconds{0}, Seconds(due) - options_.clock->now());
}

Seconds SaveAttempts::wait_after(int failures) const {
  Seconds wait = std::max(options_.first_wait, kShortestRetryWait);
  for (int i = 1; i < failures && wait < options_.longest_wait; ++i) wait *= 2;
  return std::max(std::min(wait, options_.longest_wait), kShortestRetryWait);
}

void SaveAttempts::insist(const std::function<bool()>& attempt, std::optional<Seconds> timeout,
                          const Deadline* deadline) const {
  const Seconds give_up = options_.clock->now() + timeout.value_or(options_.last_save_timeout);
  for (int failures = 1; !attempt(); ++failures) {
    raise_if_too_many();
    const Seconds pause = wait_after(failures);
    const bool is_too_long = options_.clock->now() + pause > give_up;
    if (is_too_long || !wait(pause, deadline)) raise("the last checkpoint could not be saved");
  }
}

// False: the deadline comes first.
bool SaveAttempts::wait(Seconds time, const Deadline* deadline) const {
  Mutex mutex;
  CondVar nobody_elses;
  const Deadline::Wait wait(deadline, mutex, nobody_elses);
  MutexLock lock(mutex);
  const Seconds until = options_.clock->now() + time;
  for (Seconds left = time; left > Seconds{0}; left = until - options_.clock->now()) {
    if (wait.at_most(left) < left) return false;
    options_.clock->wait_for(nobody_elses, mutex, left);  // wait: the pause after a failed save
  }
  return true;
}

}  // namespace longhaul
