#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "longhaul/binding/loop/torch_loop.h"
#include "longhaul/train/divergence/way_back.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {

// A Trainer's way back from bad losses (WayBack), if its options have one: in its steps, and between two sessions. One
// thread.
class LossGuard {
 public:
  // Adds what checkpoints have of it. `loop` is borrowed.
  LossGuard(const std::optional<DivergenceOptions>& options, const Scope& scope, TorchLoop& loop);

  void searches_as(const SupervisorOptions& options);  // where a restart looks for checkpoints

  // The model is restored or new, and the loop is attached to the session. Calls on_rollback, within a step that is
  // none, so that nothing is saved meanwhile. Returns whether it was called.
  bool begin_run(Supervisor& supervisor, Session& session);

  // Whether the loss of the step under way ends it. nullopt: it has none, of which the log tells.
  bool is_bad(std::optional<double> loss);
  void raise() const;  // throws the error of the last bad loss of this run, if there was one

  bool is_on() const { return way_back_.has_value(); }
  bool leaves_out(int64_t step) const { return way_back_ && way_back_->next_step(step) > step; }

 private:
  bool catch_up(Supervisor& supervisor, Session& session);

  TorchLoop& loop_;
  std::optional<WayBack> way_back_;  // nullopt: bad losses are let pass
  FallBackOptions search_;
  std::exception_ptr bad_;  // null: there was no bad loss in this run
  int64_t steps_without_loss_ = 0;
};

}  // namespace longhaul
