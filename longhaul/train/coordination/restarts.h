#pragma once

#include <optional>
#include <string_view>

#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// When a lost session (is_lost_session()) is replaced. Restarts are counted in a row: a session that lasted
// `healthy_after` once it was ready ends the row.
struct RestartOptions {
  std::optional<int> max_restarts = 10;  // in a row; nullopt: any number
  Seconds backoff{1};                    // before the first restart of a row; each further one waits twice as long
  Seconds max_backoff{120};
  Seconds healthy_after{600};
};

// Counts the restarts of one training, and waits before each.
//
//   none --session_begins--> session --session_lost: true--> none, wait --wait_for_next: true--> none
//
// A session that was lost before it was ready never began.
//
// One thread at a time.
class Restarts {
 public:
  // The coordinator's clock measures the times, and its stop ends the waits.
  Restarts(const RestartOptions& options, Coordinator coord) : options_(options), coord_(std::move(coord)) {}

  void session_begins() { begin_ = coord_.clock().now(); }  // it is ready

  // Whether there may be another session. Logs the reason, or that this was the last one.
  bool session_lost(std::string_view why);

  // Until it is time for the next session; false: a stop was requested meanwhile.
  bool wait_for_next();

 private:
  Seconds next_backoff() const;

  const RestartOptions options_;
  const Coordinator coord_;
  std::optional<Seconds> begin_;  // of the session; nullopt: there is none
  int in_a_row_ = 0;
};

}  // namespace longhaul
