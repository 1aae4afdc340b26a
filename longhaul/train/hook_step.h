#pragma once

#include <cstdint>

#include "longhaul/train/session_run_hook.h"

namespace longhaul {

// The graph's global step as a hook uses it: asked for along with each run, which gives the step that the run began
// with, and read again where it matters how far the run has come.
class HookStep {
 public:
  // For begin(). FailedPreconditionError: the graph has no global step; the message names the hook.
  void find(const Graph& graph, const char* hook);

  const Output& tensor() const { return tensor_; }
  const SessionRunArgs& args() const { return args_; }  // for before_run(), alone or with more after it
  static int64_t before_the_run(const SessionRunValues& values) { return values.results[0].item<int64_t>(); }
  int64_t now(Session& session) const;

 private:
  Output tensor_;
  SessionRunArgs args_;
};

}  // namespace longhaul
