#pragma once

namespace longhaul {

// Implemented by sessions in whose process a program can make the changes of a training step itself, before the run
// that counts the step (SessionCapabilities::program_steps). Snapshots wait meanwhile, as they wait for any step:
//
//   begin_step() --> the program's own code --> run(train_op)
//                                           --> abandon_step(), if there is no step after all
//
// All of a step is made by one thread. Another thread may make another.
class ProgramSteps {
 public:
  virtual ~ProgramSteps() = default;

  // Waits until no snapshot is due. From now on, snapshots wait for the end of this thread's next run that writes
  // variables. FailedPreconditionError: this thread has begun a step, or is in a step function.
  virtual void begin_step() = 0;
  virtual void abandon_step() = 0;  // does nothing if this thread has begun none
};

}  // namespace longhaul
