#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/console/checkpoints/checkpoint_listing.h"
#include "longhaul/console/text/report.h"
#include "longhaul/console/trainings/training_records.h"

namespace longhaul::console {

// What a training has made and not saved, and why. `now` is by the clock of its chief, `chief` its state. One that is
// silent may still train, with the only copy of what it has made: a full disk keeps its heartbeat away, too.

inline bool may_train(ChiefRecord::State chief) {
  return chief == ChiefRecord::State::kAlive || chief == ChiefRecord::State::kSilent;
}

// "steps 101 to 900 (12 min of training) are in no checkpoint"; empty: all are in one, as far as is known.
// `checkpoint`: that a restart takes. One that is older than the model may be of steps that were undone, or one
// that was skipped.
std::string unsaved_steps_text(const JournalRecord& journal, const std::optional<ListedCheckpoint>& checkpoint);
// "it continues from model.ckpt-100", or begins anew.
std::string next_start_text(const std::optional<ListedCheckpoint>& checkpoint);
// What the newest run, which is over, has lost, and what the next start does. Saves that failed tell the first
// themselves.
std::string what_follows(const JournalRecord& journal, const std::optional<ListedCheckpoint>& checkpoint);

// When the model went back, if the newest run has done so and still tells.
std::optional<double> time_of(const JournalRecord& journal, const Rollback& rollback);
inline int64_t undone_steps(const Rollback& rollback) {
  return rollback.until_step - rollback.restored_step;
}
// "rollback 1: ...; back to step 800, model.ckpt-800 (2026-11-28 10:17:54 UTC, 5 s ago): 111 steps are lost".
std::string rollback_text(const JournalRecord& journal, const Rollback& rollback, double now);

// That its last saves have failed, and what to do: "7 saves in a row have failed: ...", as the status page says it.
// `checkpoint`: that a restart takes. nullopt: the last one worked, or none was tried.
std::optional<std::string> failing_saves(const JournalRecord& journal,
                                         const std::optional<ListedCheckpoint>& checkpoint, ChiefRecord::State chief,
                                         double now);
Json failing_saves_json(const JournalRecord& journal);  // null: none

// That checkpoints do not come any more as they used to, of a training that makes steps. For a journal that does not
// know why, since it may be on the same full disk. nullopt: they do, as far as one can tell.
std::optional<std::string> missing_checkpoint(const JournalRecord& journal,
                                              const std::optional<ListedCheckpoint>& checkpoint, double now);

// In percent. What a run under way has not saved yet counts until it is lost; of one that has ended it is lost.
double goodput_of(const JournalRecord& journal, ChiefRecord::State chief);
// "; 12 min of training in no checkpoint yet"; empty if that is less than a second.
std::string unsaved_text(const JournalRecord& journal, ChiefRecord::State chief);

}  // namespace longhaul::console
