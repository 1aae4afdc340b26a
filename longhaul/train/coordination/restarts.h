#pragma once

#include <exception>
#include <optional>
#include <string>

#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// How often and when a lost session (is_lost_session()) is replaced. Consecutive restarts are counted. A session that
// lasts for `healthy_after` from when it was ready resets the count.
struct RestartOptions {
  std::optional<int> max_restarts = 10;  // consecutive; nullopt: any number
  Seconds backoff{1};                    // before the first restart; doubled for each further consecutive one
  Seconds max_backoff{120};
  Seconds healthy_after{600};
};

// InvalidArgumentError: a number is negative or NaN.
void check_restart(const RestartOptions& options);

// Counts the restarts of one process's training, and waits before each.
//
//   none --session_begins--> session --session_lost: true--> none, wait --wait_for_next: true--> none
//
// A session that was lost before it was ready does not count as begun.
//
// One thread at a time may call.
class Restarts {
 public:
  // The coordinator's clock measures the times, and its stop ends the waits. InvalidArgumentError: see check_restart().
  Restarts(const RestartOptions& options, Coordinator coord);

  void session_begins() { begin_ = coord_.clock().now(); }  // call it when the session is ready

  // Returns whether another session may be made. Logs the reason of the loss, or that this was the last session.
  // `reported` is an error that a coordinator has logged, if any: if it says the same, only the first words are logged.
  bool session_lost(const std::string& why, const std::exception_ptr& reported = nullptr);

  // Waits until it is time for the next session. Returns false if a stop was requested during the wait.
  bool wait_for_next();

 private:
  Seconds next_backoff() const;

  const RestartOptions options_;
  const Coordinator coord_;
  std::optional<Seconds> begin_;  // of the session; nullopt: no session
  int in_a_row_ = 0;
};

}  // namespace longhaul
