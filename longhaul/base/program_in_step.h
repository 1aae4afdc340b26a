#pragma once

namespace longhaul {

// While it lives, this thread runs a program's code within a training step. What waits for the end of a step, or for
// somebody who may do so, asks refuse_within_step() first.
class ProgramInStep {
 public:
  ProgramInStep();
  ~ProgramInStep();
  ProgramInStep(const ProgramInStep&) = delete;
  ProgramInStep& operator=(const ProgramInStep&) = delete;
};

// FailedPreconditionError: this thread is in one. `what` it does: "saves".
void refuse_within_step(const char* what);

}  // namespace longhaul
