#pragma once

#include <stdexcept>
#include <vector>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

class CoordinatedSession;

// Ends the training as a stop does, from within its loop: no error to MonitoredSession::monitor().
class StopIteration : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a step function works with (MonitoredSession::run_step_fn), for one call of it.
class StepContext {
 public:
  explicit StepContext(CoordinatedSession& session) : session_(session) {}

  // The session itself: hooks take no part in its runs.
  Session& session() const;

  // As MonitoredSession::run(), but a lost session is not replaced here: the step function is called again.
  Tensor run_with_hooks(const Fetch& fetch, const Feeds& feeds = {}, const RunOptions& options = {},
                        proto::RunMetadata* metadata = nullptr) const;
  std::vector<Tensor> run_with_hooks(const std::vector<Fetch>& fetches, const Feeds& feeds = {},
                                     const RunOptions& options = {}, proto::RunMetadata* metadata = nullptr) const;

  // Ends the step function, and the training's loop if nobody takes the StopIteration.
  [[noreturn]] void request_stop() const;

 private:
  CoordinatedSession& session_;
};

}  // namespace longhaul
