#pragma once

#include <cstdint>

namespace longhaul {

// Implemented by sessions on servers (SessionCapabilities::training_joining). Any thread.
class TrainingJoining {
 public:
  virtual ~TrainingJoining() = default;

  // Says that the session's program trains a model which another one has initialised, and which was at this step. Runs
  // that are prepared later draw random numbers that depend on the session's task and on the step, if the graph has a
  // seed: so two workers do not draw the same ones, nor does a restarted worker draw its first ones again. (Without a
  // seed, the numbers differ in each session anyway.) Session managers call it; a program that works with its own
  // sessions calls it before its first training step.
  virtual void join_training(int64_t step) = 0;
};

}  // namespace longhaul
