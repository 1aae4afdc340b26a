#include "longhaul/trainer/training_loops.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/trainer/default_generator.h"

namespace longhaul {
namespace {

void warn_of_epochs_without_batches(int64_t epoch) {
  if (epoch > 0) return;
  log_warning(
      "epoch 0 has changed the module, but had no loop of Trainer::batches(), so an epoch is one step: checkpoints are "
      "taken only between epochs, a stop waits for the end of one, and a crash loses the whole. Write for (auto& batch "
      ": trainer.batches(*loader)) inside epochs()");
}

// Of a loop that begins after a restart, and has nothing left.
void tell_none_left(const std::string& loop, const char* parts, bool was_left, int64_t step) {
  if (was_left) {
    log_info(
        "{} was left by a break before the restart, which ends it for good: the training is at step {}, and the code "
        "after the loop runs",
        loop, step);
  } else {
    log_info("{}: all {} are made, the training is at step {}", loop, parts, step);
  }
}

}  // namespace

TrainingLoops::TrainingLoops(TorchLoop& loop, LoopPosition& position, Events events)
    : loop_(loop), position_(position), events_(std::move(events)) {}

void TrainingLoops::begin_run(Session& session, bool is_restored) {
  loop_.attach(session);
  is_running_ = true;
  thread_ = std::this_thread::get_id();
  is_restored_ = is_restored && loop_.step() > 0;  // before the first step the program begins as it always does
  was_left_ = has_moved_on_ = is_stopped_ = in_outer_ = in_epoch_ = in_batches_ = false;
  outer_ = inner_ = -1;
  if (events_.session_begins(session)) events_.moved_on();
  if (!is_restored_) return;
  restored_generator_ = default_generator_state();
  loop_.keep_restored();
}

void TrainingLoops::run(const std::function<void()>& body) {
  try {
    body();
  } catch (const TrainingStopped&) {
  }
  try {
    settle();
  } catch (const TrainingStopped&) {
  }
}

void TrainingLoops::end_run() {
  settle();
  if (outer_ < 0) {
    log_warning(
        "Trainer::run() has ended without a loop of the Trainer, so no step was counted and nothing that was trained "
        "is saved as a step: write for (int64_t step : trainer.steps(n)), or trainer.epochs(n), in run()");
  }
  first_step_after_restore(/*with_weights=*/false);  // the program may want the best ones, and is told
  if (has_moved_on_) events_.moved_on();
  if (changed()) {
    log_warning(
        "the module was changed after the last step of the training, such as by other weights that were loaded into "
        "it: the last checkpoint has these values. Change a copy, or do it in Trainer::validate()");
  }
  loop_.cancel();
  loop_.detach();
  is_running_ = false;
}

void TrainingLoops::fail_run(const std::string& reason) {
  loop_.abandon(reason);
  loop_.detach();
  is_running_ = false;
}

void TrainingLoops::need_run(const char* name) const {
  if (is_running_ && thread_ == std::this_thread::get_id()) return;
  if (is_running_) {
    throw FailedPreconditionError(fmt::format(
        "Trainer::{}() was called in another thread than Trainer::run(): one thread makes the steps", name));
  }
  throw FailedPreconditionError(
      fmt::format("Trainer::{}() was called outside Trainer::run(): return trainer.run([&] {{ ... }}); around the "
                  "loops restores the "
                  "model before them, and ends the training after them",
                  name));
}

bool TrainingLoops::is_over() const {
  const LoopPosition::Values now = position_.get();
  return now.finished || outer_ < now.outer || now.outer_left;
}

void TrainingLoops::begin_step() {
  if (!loop_.is_in_step()) loop_.begin();
}

// Counts the step. From here on until the next begin_step(), snapshots may be taken.
void TrainingLoops::finish_step() {
  was_left_ = has_moved_on_ = false;
  if (events_.is_bad()) {
    is_stopped_ = true;
    throw TrainingStopped{};
  }
  loop_.made(events_.take_loss());
  events_.after_step(loop_.step());
}

void TrainingLoops::settle() {
  if (was_left_) finish_step();
}

void TrainingLoops::end_step() {
  stop_again();
  finish_step();
  check_stop();
  begin_step();
}

bool TrainingLoops::suspend() {
  const bool in_step = loop_.is_in_step();
  settle();
  loop_.cancel();
  return in_step;
}

void TrainingLoops::resume(bool in_step) {
  if (in_step) begin_step();
}

// The program's code before the batches may have set what was restored, as it does at the begin of each epoch: that
// was before the checkpoint, and what came after it counts.
void TrainingLoops::first_step_after_restore(bool with_weights) {
  if (!is_restored_) return;
  is_restored_ = false;
  set_default_generator_state(restored_generator_);
  loop_.put_back_restored(with_weights);
  loop_.forget_restored();
  if (!with_weights || !changed()) return;
  loop_.cancel();  // the step begins here, and has changed nothing yet
  begin_step();
}

void TrainingLoops::enter_outer(const char* name) {
  need_run(name);
  stop_again();
  if (in_outer_) {
    throw FailedPreconditionError(fmt::format(
        "Trainer::{}() was called inside another loop of the Trainer: the loop inside epochs() is batches()", name));
  }
  settle();
  check_stop();
  ++outer_;
  if (const LoopPosition::Values now = position_.get(); is_restored_ && outer_ > now.outer && !is_over()) {
    is_restored_ = false;  // the checkpoint is of the end of the loop before, and has nothing of the code since then
    loop_.forget_restored();
  } else if (is_restored_) {  // whatever the code before the loop has drawn and changed
    set_default_generator_state(restored_generator_);
    loop_.put_back_restored();
    if (changed()) loop_.cancel();  // the step of the loop before, which was none
  }
  begin_step();
  in_outer_ = true;
  position_.change([this](LoopPosition::Values& values) {
    if (outer_ <= values.outer) return;
    values.outer = outer_;
    values.outer_left = values.inner_left = false;
    values.epoch = values.inner = values.batch = values.epoch_size = 0;
  });
}

void TrainingLoops::enter_steps(int64_t last) {
  enter_outer("steps");
  last_step_ = last;
  last_epoch_ = 0;
  if (has_step(last)) {
    first_step_after_restore();
  } else if (is_restored_ && goes_on() && outer_ == position_.get().outer) {
    tell_none_left(fmt::format("steps({})", last), "steps", position_.get().outer_left, loop_.step());
  }
  events_.ends_at(last_step());
}

void TrainingLoops::enter_epochs(int64_t last) {
  enter_outer("epochs");
  last_step_ = 0;
  last_epoch_ = last;
  if (is_restored_ && goes_on() && outer_ == position_.get().outer && !has_epoch(last)) {
    tell_none_left(fmt::format("epochs({})", last), "epochs", position_.get().outer_left, loop_.step());
  }
  events_.ends_at(last_step());
}

int64_t TrainingLoops::last_step() const {
  const LoopPosition::Values now = position_.get();
  if (last_epoch_ == 0 || now.epoch_size == 0 || now.inner > 0) return last_step_;
  return loop_.step() + (last_epoch_ - now.epoch) * now.epoch_size - now.batch;
}

std::string TrainingLoops::part() const {
  return last_epoch_ > 0 ? fmt::format("epoch {} of {}", epoch() + 1, last_epoch_) : "";
}

// What the program has done since the step before belongs to it, as to any other.
void TrainingLoops::leave_out_step() {
  check_stop();
  first_step_after_restore();
  loop_.made({});
  was_left_ = has_moved_on_ = false;
  begin_step();
}

bool TrainingLoops::has_step(int64_t last) {
  while (loop_.step() < last && !is_over() && leaves_out()) leave_out_step();
  return loop_.step() < last && !is_over();
}

void TrainingLoops::leave_outer(bool by_break) {
  in_outer_ = in_epoch_ = false;
  if (!by_break) return;
  was_left_ = changed();
  position_.change([](LoopPosition::Values& values) { values.outer_left = true; });
  log_info(
      "{} was left by a break at step {}: the loop is over for good, and a restart does not continue it. To end the "
      "program so that it can be continued, call Trainer::request_stop()",
      last_epoch_ > 0 ? fmt::format("epochs({})", last_epoch_) : fmt::format("steps({})", last_step_),
      loop_.step() + (was_left_ ? 1 : 0));
}

bool TrainingLoops::has_epoch(int64_t last) const {
  return position_.get().epoch < last && !is_over();
}

void TrainingLoops::begin_epoch() {
  in_epoch_ = true;
  inner_ = -1;
  const LoopPosition::Values now = position_.get();
  const bool is_new = now.inner == 0 && now.batch == 0 && !now.inner_left;
  if (is_new) {
    first_step_after_restore();
    const auto short_values = std::make_shared<const std::map<std::string, std::string>>(loop_.short_values());
    position_.change([&](LoopPosition::Values& values) {
      values.generator = default_generator_state();
      values.short_values = short_values;
    });
    return;
  }
  // The code before the batches finds what it found.
  if (now.generator.defined()) set_default_generator_state(now.generator);
  if (now.short_values) loop_.set_short_values(*now.short_values);
}

void TrainingLoops::end_epoch() {
  stop_again();
  const bool is_one_step = inner_ < 0 && changed();
  if (is_one_step) warn_of_epochs_without_batches(epoch());
  position_.change([](LoopPosition::Values& values) {
    ++values.epoch;
    values.inner = values.batch = 0;
    values.inner_left = false;
  });
  in_epoch_ = false;
  has_moved_on_ = true;
  if (was_left_ || is_one_step) end_step();
}

int64_t TrainingLoops::enter_batches() {
  need_run("batches");
  stop_again();
  if (!in_epoch_ || in_batches_) {
    throw FailedPreconditionError(
        in_batches_
            ? "Trainer::batches() was called inside the batches of another call: end that loop first"
            : "Trainer::batches() was called outside an epoch: for (int64_t epoch : trainer.epochs(n)) around it "
              "counts the epochs; for batches without epochs use steps()");
  }
  in_batches_ = true;
  ++inner_;
  settle();
  position_.change([this](LoopPosition::Values& values) {
    if (inner_ <= values.inner) return;
    values.inner = inner_;
    values.batch = 0;
    values.inner_left = false;
  });
  const LoopPosition::Values now = position_.get();
  const bool none_left = inner_ < now.inner || now.inner_left || now.finished;
  if (none_left && inner_ == now.inner) first_step_after_restore();
  if (!none_left && now.batch > 0) {
    log_info("epoch {}: {} batches were taken before the restart, and are left out", now.epoch, now.batch);
  }
  return none_left ? kNoneLeft : now.batch;
}

void TrainingLoops::check_stop() {
  if (!events_.should_stop()) return;
  is_stopped_ = true;
  throw TrainingStopped{};
}

// A program that catches what ends its loops would train on, without a step.
void TrainingLoops::stop_again() {
  if (!is_stopped_) return;
  log_warning(
      "the program has caught the exception by which a stop leaves its loops, and gone on. It is thrown again: catch "
      "std::exception in place of ..., which this is not, and what is behind the loops runs only when they are "
      "complete");
  throw TrainingStopped{};
}

void TrainingLoops::skipped(int64_t found, uint64_t look) {
  const LoopPosition::Values now = position_.get();
  if (found < now.batch) {
    log_warning(
        "{} batches of epoch {} were taken before the restart, but the loader has only {} now: the epoch ends here. Is "
        "it the same data?",
        now.batch, now.epoch, found);
  } else if (found > 0 && look != 0 && now.batch_look != 0 && look != now.batch_look) {
    log_warning(
        "the batches of epoch {} come in another order than before the restart, or are other ones: some examples will "
        "be taken twice and others not at all. The order must follow from the epoch's number, or from libtorch's "
        "default generator when the loader begins",
        now.epoch);
  }
  first_step_after_restore();
}

void TrainingLoops::end_batch(uint64_t look) {
  position_.change([look](LoopPosition::Values& values) {
    ++values.batch;
    values.batch_look = look;
  });
  end_step();
}

void TrainingLoops::leave_out_batch(uint64_t look) {
  position_.change([look](LoopPosition::Values& values) {
    ++values.batch;
    values.batch_look = look;
  });
  leave_out_step();
}

void TrainingLoops::note_last_batch() {
  position_.change([this](LoopPosition::Values& values) {
    values.inner_left = true;
    if (inner_ == 0) values.epoch_size = values.batch;
  });
  events_.ends_at(last_step());
}

void TrainingLoops::leave_batches(bool by_break) {
  in_batches_ = false;
  if (!by_break) return;
  was_left_ = changed();
  position_.change([](LoopPosition::Values& values) { values.inner_left = true; });
}

}  // namespace longhaul
