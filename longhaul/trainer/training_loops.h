#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "longhaul/binding/loop/torch_loop.h"
#include "longhaul/trainer/loop_position.h"

namespace longhaul {

// Ends the loops of a Trainer: thrown between two steps once the run was asked to stop, and caught by Trainer::run().
// It is no std::exception, so that a program's own handlers leave it alone.
struct TrainingStopped {};

// The loops of a Trainer's program: which steps are left, where each begins and ends, and what a restart repeats.
//
// Everything that the program does between two ends of steps belongs to the later step: from the first loop on, a step
// is always under way, and snapshots are taken only at its end. So a restart repeats the code around the batches of an
// epoch exactly if no checkpoint has what it did:
//
//   enter_outer, [begin_epoch, enter_batches, (skip), end_step ..., leave_batches, end_epoch] ..., leave_outer
//
// One thread.
class TrainingLoops {
 public:
  struct Events {
    std::function<bool()> should_stop;
    std::function<bool(Session&)> session_begins;  // may change the program's values: true, it has
    std::function<bool()> is_bad;                  // the step that ends, by its loss: it must not count
    std::function<bool(int64_t step)> leaves_out;  // whether no step of this number is made
    std::function<at::Tensor()> take_loss;         // of the step that ends; undefined: none
    std::function<void()> moved_on;                // the position and the program's values changed, but not the step
    std::function<void(int64_t)> after_step;       // between two steps, with the number of steps made
    std::function<void(int64_t)> ends_at;          // what last_step() is now, where it may have changed
  };
  TrainingLoops(TorchLoop& loop, LoopPosition& position, Events events);

  // The run begins, in a session whose model is ready: restored, or new.
  void begin_run(Session& session, bool is_restored);
  // Calls the program's loops, up to their end or a stop. A step that a break has left is counted.
  void run(const std::function<void()>& body);
  // It ends: well, or by an error.
  void end_run();
  void fail_run(const std::string& reason);

  int64_t step() const { return loop_.step(); }
  // Whether there was no loop of steps or epochs yet.
  bool is_before_loops() const { return is_running_ && outer_ < 0; }
  // Whether the step under way has changed the module.
  bool changed() const { return loop_.is_in_step() && loop_.changed(); }
  // The same, or anything else that checkpoints have of the program.
  bool changed_anything() const { return loop_.is_in_step() && loop_.changed_anything(); }
  // The code from suspend() to resume() is no part of a step: a step that is under way begins anew with resume(). Only
  // while changed_anything() is false. Returns whether there is one, for resume().
  bool suspend();
  void resume(bool in_step);

  // A loop of steps, or of epochs, up to `last`. FailedPreconditionError: outside a run; inside another one.
  void enter_steps(int64_t last);
  void enter_epochs(int64_t last);
  // At which step the outer loop ends, as far as is known, or 0; and where it is: "epoch 3 of 10", or nothing.
  int64_t last_step() const;
  std::string part() const;

  bool has_step(int64_t last);  // counts those that are left out
  void end_step();              // TrainingStopped, and what a run throws
  void leave_outer(bool by_break);

  bool leaves_out() const { return goes_on() && events_.leaves_out(loop_.step()); }
  void leave_out_step();  // counts one that the program does not make

  bool has_epoch(int64_t last) const;
  int64_t epoch() const { return position_.get().epoch; }
  void begin_epoch();
  void end_epoch();

  // The batches of an epoch. Returns how many of them to skip, since they were taken before a restart; kNoneLeft: all.
  // After that, skipped(). FailedPreconditionError: outside an epoch; inside other batches.
  static constexpr int64_t kNoneLeft = -1;
  int64_t enter_batches();
  // `found`: how many batches the loader had of those to skip; `look`: at the last of them, 0: there is none that would
  // be the same. Warns if these are not the batches that were taken. Call it before the next one is loaded.
  void skipped(int64_t found, uint64_t look);
  void check_stop();  // TrainingStopped
  bool goes_on() const { return !position_.get().finished; }
  void end_batch(uint64_t look);  // at the batch
  void leave_out_batch(uint64_t look);
  void note_last_batch();
  void leave_batches(bool by_break);

 private:
  void enter_outer(const char* name);
  void stop_again();
  void begin_step();
  void finish_step();
  void settle();
  void first_step_after_restore(bool with_weights = true);
  void need_run(const char* name) const;
  bool is_over() const;

  TorchLoop& loop_;
  LoopPosition& position_;
  const Events events_;
  at::Tensor restored_generator_;  // the default generator's state at the begin of a run that was restored
  bool is_running_ = false;
  std::thread::id thread_;     // that makes the steps
  bool is_restored_ = false;   // and no step was begun since
  bool has_moved_on_ = false;  // since the last step: an epoch has ended
  bool was_left_ = false;      // by a break, in a step that has changed the module: it is counted
  bool is_stopped_ = false;    // TrainingStopped was thrown
  int64_t outer_ = -1, inner_ = -1;
  int64_t last_step_ = 0, last_epoch_ = 0;  // of the outer loop, which has one of them
  bool in_outer_ = false, in_epoch_ = false, in_batches_ = false;
};

}  // namespace longhaul
