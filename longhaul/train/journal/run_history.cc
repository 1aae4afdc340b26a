#include "longhaul/train/journal/run_history.h"

#include <algorithm>
#include <utility>

#include "longhaul/train/journal/save_interval.h"

namespace longhaul {
namespace {

constexpr size_t kMostCheckpoints = 16;  // that are remembered for their crashes
constexpr double kWeightOfNewest = 0.5;
constexpr Seconds kLongestPause{366 * 24 * 3600.0};

bool begins_again(RunEvent::Kind kind) {
  using Kind = RunEvent::Kind;
  return kind == Kind::kBegan || kind == Kind::kRestoring || kind == Kind::kRestored || kind == Kind::kInitialised ||
         kind == Kind::kFound;
}

// Whether the event's step is the one of its moment. A checkpoint's is of an earlier one.
bool knows_the_step(const RunEvent& event) {
  using Kind = RunEvent::Kind;
  return event.step &&
         (event.kind == Kind::kTraining || event.kind == Kind::kMark || event.kind == Kind::kInterrupted ||
          event.kind == Kind::kDiverged || event.kind == Kind::kStopRequested);
}

// Within a run events have the time of a clock that goes evenly; between two runs that of the machine's, which may have
// been wrong in one of them. It is not known then how long the training was stopped.
Seconds passed_between(double before, double after) {
  const Seconds passed{std::max(0.0, after - before)};
  return passed <= kLongestPause ? passed : Seconds{0};
}

}  // namespace

void RunHistory::apply(const RunEvent& event) {
  const bool is_first = sums_.runs == 0;
  const Seconds passed = is_first ? Seconds{0} : passed_between(sums_.until, event.time);
  const Seconds trained = sums_.breakdown.training;
  account(event, passed);
  count(event, passed, sums_.breakdown.training - trained);
  if (event.kind != RunEvent::Kind::kBegan) sums_.short_runs.heard(event.time);
  if (event.kind == RunEvent::Kind::kBegan) begin_run();
  past_.apply(event, sums_.runs);
  apply_to_rollbacks(event);
  move_to(event.step);
  if (knows_the_step(event)) {  // time without steps, as that of a validation, is in no need of a checkpoint
    unsaved_.at(*sums_.highest_step);
    at_stake_.at(*sums_.step);
  }
  switch (event.kind) {
    case RunEvent::Kind::kBegan:
    case RunEvent::Kind::kMark:
    case RunEvent::Kind::kHung:
    case RunEvent::Kind::kSaveFailed:
    case RunEvent::Kind::kRefused: break;
    case RunEvent::Kind::kRestoring: return recover(event, Phase::kRestoring);
    case RunEvent::Kind::kRestored:
    case RunEvent::Kind::kInitialised:
    case RunEvent::Kind::kFound: return recover(event, Phase::kStarting);
    case RunEvent::Kind::kDiverged:  // of a step, though its run may have been too short to be seen training
      if (sums_.phase != Phase::kStopping) sums_.phase = Phase::kTraining;
      is_interrupted_ = true;
      break;
    case RunEvent::Kind::kInterrupted: is_interrupted_ = true; break;
    case RunEvent::Kind::kTraining:
      sums_.short_runs.trained(event.time);
      sums_.phase = Phase::kTraining;
      break;
    case RunEvent::Kind::kSaved: return save(event);
    case RunEvent::Kind::kStopRequested:
      sums_.stop_requested = true;
      sums_.phase = Phase::kStopping;
      break;
    case RunEvent::Kind::kEnded:
      forget_crashes(sums_.restored);
      sums_.short_runs.ended();
      sums_.phase = Phase::kStopped;
      break;
    case RunEvent::Kind::kDisturbed: sums_.stop_requested = true; return die();
    case RunEvent::Kind::kFailed:
      // An error while it is restored is the graph's, or the disk's: one that is damaged is skipped by itself.
      if (sums_.phase != Phase::kRestoring) blame_checkpoint();
      return die();
    case RunEvent::Kind::kDied:
      if (sums_.phase == Phase::kStopped) return;
      blame_checkpoint();
      return die();
  }
}

void RunHistory::apply_to_rollbacks(const RunEvent& event) {
  switch (event.kind) {
    case RunEvent::Kind::kDiverged: return rollbacks_.diverged(event.text);
    case RunEvent::Kind::kRefused: return rollbacks_.refused(event.text);
    case RunEvent::Kind::kSaved: return rollbacks_.saved(event.text);
    case RunEvent::Kind::kTraining: return rollbacks_.trained();
    case RunEvent::Kind::kRestored: return rollbacks_.recovered();
    case RunEvent::Kind::kInitialised: rollbacks_ = {}; return;  // another training
    default: return;
  }
}

// Books what passed since the event before.
void RunHistory::account(const RunEvent& event, Seconds passed) {
  TimeBreakdown& breakdown = sums_.breakdown;
  sums_.until = event.time;
  const bool makes_steps = !is_interrupted_ && !begins_again(event.kind);
  switch (sums_.phase) {
    case Phase::kStarting:
      (event.kind == RunEvent::Kind::kBegan ? breakdown.stopped : breakdown.initialising) += passed;
      break;
    case Phase::kRestoring:
      (event.kind == RunEvent::Kind::kBegan ? breakdown.stopped : breakdown.restoring) += passed;
      break;
    case Phase::kTraining:
      if (makes_steps) return account_training(event, passed);
      breakdown.stopped += passed;
      break;
    case Phase::kStopping:
      if (makes_steps) return account_stopping(event, passed);
      breakdown.stopped += passed;
      break;
    case Phase::kStopped: breakdown.stopped += passed; break;
  }
}

bool RunHistory::trains() const {
  return (sums_.phase == Phase::kTraining || sums_.phase == Phase::kStopping) && !is_interrupted_;
}

// Before the event's step is the newest one. `trained`: what of the passed time is accounted as training.
void RunHistory::count(const RunEvent& event, Seconds passed, Seconds trained) {
  if (event.kind == RunEvent::Kind::kEnded || knows_the_step(event)) {
    uncounted_ = {};
    counts_steps_ = event.step.has_value();
    return;
  }
  if (!trains() || !counts_steps_) return;
  // Its step is that of a moment ago. Later ones are marked, if there are any.
  if (event.kind == RunEvent::Kind::kSaveFailed && event.step && event.step >= sums_.step) {
    uncounted_ = {};
    return;
  }
  std::optional<int64_t> known = sums_.step;
  // Steps after a stop are marked, too. When a process died nobody knows: its event has the time of the one before.
  const bool is_silent = begins_again(event.kind) || sums_.phase == Phase::kStopping;
  if (event.kind == RunEvent::Kind::kDied) passed = kJournalMarkSecs;
  uncounted_.time += is_silent ? std::min(passed, kJournalMarkSecs) : passed;
  uncounted_.training += trained;
  if (event.kind == RunEvent::Kind::kSaved && event.step >= known) {
    known = event.step;
    uncounted_.time = std::min(uncounted_.time, event.lasted);
  }
  uncounted_.training = std::min(uncounted_.training, uncounted_.time);
  uncounted_.after = uncounted_.time > Seconds{0} ? known : std::nullopt;
}

void RunHistory::account_training(const RunEvent& event, Seconds passed) {
  const Seconds stalled = event.kind == RunEvent::Kind::kSaved ? std::min(passed, event.stalled) : Seconds{0};
  const Seconds redone = (passed - stalled) * redone_share(event.step);
  sums_.breakdown.saving += stalled;
  sums_.breakdown.redone += redone;
  sums_.breakdown.training += passed - stalled - redone;
  unsaved_.trained(passed - stalled - redone);
  at_stake_.made(passed - stalled);
}

// A program may make steps after a stop. If it has made none since the event before, all waits for a save.
void RunHistory::account_stopping(const RunEvent& event, Seconds passed) {
  if (sums_.step && event.step > sums_.step) return account_training(event, passed);
  const Seconds saving = event.kind == RunEvent::Kind::kSaved ? std::min(passed, event.lasted) : Seconds{0};
  sums_.breakdown.saving += saving;
  sums_.breakdown.stopped += passed - saving;
}

// Of the steps from the last known one on, the part that an earlier run had made.
double RunHistory::redone_share(std::optional<int64_t> to) const {
  if (!sums_.step || !sums_.highest_step || *sums_.step >= *sums_.highest_step) return 0;
  if (!to || *to <= *sums_.highest_step) return 1;
  const auto from = static_cast<double>(*sums_.step);
  return (static_cast<double>(*sums_.highest_step) - from) / (static_cast<double>(*to) - from);
}

// Within a run the step goes up: a checkpoint that was written while the training went on is of an earlier one.
void RunHistory::move_to(std::optional<int64_t> step) {
  if (!step) return;
  sums_.step = std::max(*step, sums_.step.value_or(0));
  sums_.highest_step = std::max(*step, sums_.highest_step.value_or(0));
}

void RunHistory::begin_run() {
  if (sums_.phase != Phase::kStopped) die();
  ++sums_.runs;
  sums_.phase = Phase::kStarting;
  sums_.restored.clear();
  sums_.restored_step.reset();
  sums_.step.reset();
  is_interrupted_ = counts_steps_ = found_model_ = false;
  sums_.short_runs.began();
  sums_.has_saved = sums_.stop_requested = false;
}

// What was lost is booked where it was made first, since nobody will know when all of it has been made again.
void RunHistory::redo_uncounted() {
  const Seconds lost = std::min(uncounted_.training, sums_.breakdown.training);
  sums_.breakdown.training -= lost;
  sums_.breakdown.redone += lost;
  unsaved_.lost(lost);
  uncounted_ = {};
}

void RunHistory::remember_uncounted(const Uncounted& uncounted) {
  uncounted_ = uncounted.time > Seconds{0} ? uncounted : Uncounted{};
}

// A run that recovers while it trains has lost its session.
void RunHistory::recover(const RunEvent& event, Phase phase) {
  if (sums_.phase == Phase::kTraining) ++sums_.interruptions;
  sums_.phase = phase;
  is_interrupted_ = counts_steps_ = false;
  found_model_ = event.kind == RunEvent::Kind::kFound;
  if (event.kind == RunEvent::Kind::kRestored || event.kind == RunEvent::Kind::kInitialised) redo_uncounted();
  if (event.kind == RunEvent::Kind::kRestored) {
    unsaved_.has_saved(event.step, sums_.highest_step);
    at_stake_ = TimeAtStake(Seconds{0}, event.step);
  }
  if (event.kind == RunEvent::Kind::kInitialised) {
    unsaved_ = UnsavedTime(sums_.breakdown.training, event.step.value_or(0));
    at_stake_ = TimeAtStake(Seconds{0}, event.step.value_or(0));
  }
  sums_.restored = event.kind == RunEvent::Kind::kInitialised ? "" : event.text;
  sums_.restored_step = sums_.step = event.step;
  sums_.short_runs.recovered(event.time, event.step);
}

void RunHistory::save(const RunEvent& event) {
  sums_.short_runs.saved(event.step);
  unsaved_.saved(event.step, sums_.highest_step);
  at_stake_.saved(event.step, sums_.step);
  const Seconds before = sums_.save_cost.value_or(event.cost);
  sums_.save_cost = before + kWeightOfNewest * (event.cost - before);
  const bool is_the_restored = event.step && event.step == sums_.restored_step && event.text == sums_.restored;
  if (!is_the_restored) forget_crashes(event.text);
  if (event.step && sums_.restored_step && *event.step <= *sums_.restored_step) return;
  sums_.has_saved = true;
  forget_crashes(sums_.restored);
}

void RunHistory::die() {
  ++sums_.interruptions;
  sums_.short_runs.ended();
  sums_.phase = Phase::kStopped;
}

void RunHistory::blame_checkpoint() {
  if (sums_.has_saved || sums_.stop_requested || sums_.restored.empty()) return;
  Crashes crashes = crashes_of(sums_.restored);
  ++crashes.count;
  remember_crashes(std::move(crashes));
}

void RunHistory::remember_crashes(Crashes crashes) {
  forget_crashes(crashes.checkpoint);
  if (sums_.crashes.size() == kMostCheckpoints) sums_.crashes.erase(sums_.crashes.begin());
  sums_.crashes.push_back(std::move(crashes));
}

void RunHistory::forget_crashes(const std::string& checkpoint) {
  std::erase_if(sums_.crashes, [&](const Crashes& crashes) { return crashes.checkpoint == checkpoint; });
}

Seconds best_save_interval(const RunHistory& history, std::optional<Seconds> cost) {
  if (!cost && history.sums().save_cost) cost = std::min(*history.sums().save_cost, kMostCostOfFewSaves);
  if (!cost) return kShortestAutoInterval;
  const Seconds between = mean_time_between_failures(history.breakdown().running(), history.sums().interruptions);
  return choose_save_interval(*cost, between);
}

int64_t RunHistory::deaths_after(const std::string& checkpoint) const {
  return crashes_of(checkpoint).count;
}

RunHistory::Crashes RunHistory::crashes_of(const std::string& checkpoint) const {
  for (const Crashes& crashes : sums_.crashes) {
    if (crashes.checkpoint == checkpoint) return crashes;
  }
  return {.checkpoint = checkpoint};
}

}  // namespace longhaul
