#pragma once

#include <string>

#include "longhaul/base/error.h"

namespace longhaul {

class ModelReset;
class ModelWatching;
class ProgramSteps;
class SnapshotKeeping;
class StepFates;
class StepFetching;
class StepReading;
class StepWatching;
class StopNoticing;
class TaskSnapshots;
class TrainingEnding;
class TrainingJoining;

// The capabilities of a session beyond its runs: an interface for each, null if the session lacks it. An in-process
// session has all of the first group; a session whose graph runs elsewhere has what the remote processes offer. The
// interfaces live as long as the session, and any thread may call them. A session that forwards its runs to another
// session returns that session's capabilities, except those that it provides itself.
//
//   if (StepWatching* watching = session.capabilities().step_watching) use(*watching);
struct SessionCapabilities {
  StepFetching* step_fetching = nullptr;        // session/step_fetch.h
  StepWatching* step_watching = nullptr;        // session/step_watch.h
  SnapshotKeeping* snapshot_keeping = nullptr;  // session/snapshots.h; snapshots_of() works without it
  ProgramSteps* program_steps = nullptr;        // session/program_steps.h
  // Of sessions on servers:
  TaskSnapshots* task_snapshots = nullptr;      // session/task_snapshots.h
  ModelWatching* model_watching = nullptr;      // session/model_watch.h
  ModelReset* model_reset = nullptr;            // session/model_reset.h
  StepFates* step_fates = nullptr;              // session/step_fates.h
  StepReading* step_reading = nullptr;          // session/step_reading.h
  StopNoticing* stop_noticing = nullptr;        // session/stop_notice.h
  TrainingEnding* training_ending = nullptr;    // session/training_ending.h
  TrainingJoining* training_joining = nullptr;  // session/training_joining.h
};

// Returns the capability, for callers that require it. UnimplementedError, with the text `lacking`: it is null. The
// text names the feature that requires the capability, the capability, and an alternative.
template <typename Capability>
Capability& required_capability(Capability* capability, const std::string& lacking) {
  if (capability == nullptr) throw UnimplementedError(lacking);
  return *capability;
}

}  // namespace longhaul
