#pragma once

#include <stdexcept>
#include <vector>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

class CoordinatedSession;

// Ends training from within its loop, like a stop. MonitoredSession::monitor() does not treat it as an error.
class StopIteration : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The argument of a step function (MonitoredSession::run_step_fn), valid for one call.
class StepContext {
 public:
  explicit StepContext(CoordinatedSession& session) : session_(session) {}

  // The underlying session, whose runs bypass the hooks.
  Session& session() const;

  // Like MonitoredSession::run(), but if the session is lost, the run is not repeated by itself: the step function is
  // called again.
  Tensor run_with_hooks(const Fetch& fetch, const Feeds& feeds = {}, const RunOptions& options = {},
                        proto::RunMetadata* metadata = nullptr) const;
  std::vector<Tensor> run_with_hooks(const std::vector<Fetch>& fetches, const Feeds& feeds = {},
                                     const RunOptions& options = {}, proto::RunMetadata* metadata = nullptr) const;

  // Ends the step function by throwing StopIteration, which also ends the training loop unless it is caught.
  [[noreturn]] void request_stop() const;

 private:
  CoordinatedSession& session_;
};

}  // namespace longhaul
