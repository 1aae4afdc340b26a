#pragma once

#include <utility>

#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/onlookers/newest_weights.h"

namespace longhaul {

// Publishes the weights of a monitored session while it trains (WeightsPublisher): those with which it begins, and new
// ones after every n-th step, also from each session that replaces a lost one. `newest` is closed at the end of the
// training, and outlives the hook.
class PublishWeightsHook : public SessionRunHook {
 public:
  // InvalidArgumentError: every_n_steps is negative.
  explicit PublishWeightsHook(NewestWeights& newest, WeightsPublisherOptions options = {})
      : newest_(newest), publisher_(newest, std::move(options)) {}

  // Throws what WeightsPublisher::begin() throws.
  void after_create_session(Session& session, const Coordinator&) override { publisher_.begin(session); }
  void end(Session&) override {
    publisher_.end();
    newest_.close();
  }

 private:
  NewestWeights& newest_;
  WeightsPublisher publisher_;
};

}  // namespace longhaul
