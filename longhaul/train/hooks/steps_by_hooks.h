#pragma once

#include <span>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Notices that a run, such as one that only reads, becomes a training step because of a hook. The loss of a bound
// program (torch_training()) is that of a step, so whoever fetches it makes a step; a hook does that in each run in
// which it asks for the loss, or for a summary of it. Warns of the first such run. One thread at a time.
class StepsByHooks {
 public:
  explicit StepsByHooks(const Graph& graph);

  // `parts`: what the caller requests of a run, then what each hook requests. Takes as long as a walk through the part
  // of the graph that they need; no time if the graph has no bound program, and after the warning.
  void look(std::span<const SessionRunArgs* const> parts, const SessionRunHooks& hooks);

 private:
  bool makes_step(const SessionRunArgs& part) const;

  const Graph& graph_;
  bool is_to_be_told_;
};

}  // namespace longhaul
