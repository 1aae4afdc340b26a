#pragma once

#include <memory>

#include "longhaul/session/step_watch.h"
#include "longhaul/train/reporting/weight_digest.h"

namespace longhaul {

// Writes a digest of all variables after each `every`-th step, for programs that run the session themselves. The
// destructor stops it, and waits for digests under way, for at most kDigestTimeout and half of the time until the
// deadline.
class WeightDigestService {
 public:
  // UnimplementedError: the session has no StepWatching. Also throws what StepWatching::watch_steps() throws.
  WeightDigestService(std::shared_ptr<Session> session, const Output& global_step, std::shared_ptr<FileWriter> writer,
                      int64_t every, const Deadline* deadline = nullptr);
  ~WeightDigestService();
  WeightDigestService(const WeightDigestService&) = delete;
  WeightDigestService& operator=(const WeightDigestService&) = delete;

 private:
  const std::shared_ptr<Session> session_;
  StepWatching& steps_;
  const std::shared_ptr<WeightDigests> digests_;  // shared with a call under way
  std::shared_ptr<const void> watch_;
};

}  // namespace longhaul
