#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/session/session.h"
#include "longhaul/train/divergence/loss_watch.h"
#include "longhaul/train/journal/rollbacks.h"

namespace longhaul {

// What happens when the loss of a training run goes bad: the model goes back to the last good checkpoint, and the
// training continues there.
struct DivergenceOptions {
  LossWatchOptions watch{};
  int64_t margin_steps = 100;     // a checkpoint is good if it was taken so many steps before the first bad loss
  int max_rollbacks = 3;          // within `within_steps`; one more bad loss ends the training; 0: the first one does
  int64_t within_steps = 10'000;  // counted back from the bad loss; 0: all of the training run counts
  // Of a Trainer: its loops leave out the steps from the checkpoint's up to the bad one (docs/guide/divergence.md). In
  // other sessions the program's input decides which examples come next.
  bool skip_batches = true;
  // Checkpoints have the losses of the watch and the number of rollbacks. false: they do not, so a restart begins a new
  // watch, and the journal and the checkpoints' steps tell which rollbacks came before; needed for a model on servers,
  // which have no values of the program. A monitored_training_session() with a `master` sets it.
  bool keep_in_checkpoints = true;
  // Called for each rollback when the model is restored: say, to lower the learning rate. Called again in each restart
  // from a checkpoint that was taken before it, so that it is exact if what it changes is in the checkpoints. In a
  // Trainer it must not run the session: it is within a step.
  std::function<void(Session&, const Rollback&)> on_rollback{};
};

// InvalidArgumentError: a number is negative or NaN.
void check_divergence(const DivergenceOptions& options);

// The loss went bad, and the training ends: there is no good checkpoint, or there were too many rollbacks.
class DivergedError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// The loss went bad, and the model goes back: the session must be replaced by one that restores. Trainers and monitored
// sessions do so; programs see this error where they train with a Supervisor, or prepare their sessions themselves.
class RollBackError : public AbortedError {
 public:
  RollBackError(const std::string& message, Rollback rollback)
      : AbortedError(message), rollback_(std::move(rollback)) {}
  const Rollback& rollback() const { return rollback_; }

 private:
  Rollback rollback_;
};

// Why a session on servers is refused.
inline constexpr char kServersKeepNothing[] =
    "the model is on servers, whose checkpoints have no values of the program: set "
    "DivergenceOptions::keep_in_checkpoints to false";

bool is_rollback(const std::exception_ptr& error);  // a RollBackError

// The tags of the number of rollbacks, and of the text about the end of a training by its loss, in the events.
inline constexpr char kRollbacksTag[] = "longhaul/rollbacks";
inline constexpr char kDivergedTag[] = "longhaul/diverged";

}  // namespace longhaul
