#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/defaulted.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/monitored/monitored_session.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

// Of the pairs of times and steps at most one is given; kNone and 0 switch the thing off.
struct MonitoredTrainingSessionOptions {
  Graph* graph = nullptr;      // nullptr: the default graph
  std::string master;          // "": this process
  bool is_chief = true;        // who initialises, recovers, checkpoints and writes summaries; the others wait for it
  std::string checkpoint_dir;  // where to recover from, and to checkpoint to; empty: neither
  std::shared_ptr<Scaffold> scaffold;  // nullptr: one with the defaults
  SessionRunHooks hooks;
  SessionRunHooks chief_only_hooks;
  Defaulted<SaveInterval> save_checkpoint_secs;  // default: 600, unless steps are given; kAuto: as it loses least time
  Defaulted<int64_t> save_checkpoint_steps;      // default: none
  Defaulted<Seconds> save_summaries_secs;        // default: none
  Defaulted<int64_t> save_summaries_steps;       // default: 100, unless secs are given
  SessionOptions config;
  Seconds stop_grace_period_secs{120};  // how long threads may take to stop
  int64_t log_step_count_steps = 100;   // how often the steps per second are written; 0: never
  Seconds max_wait_secs{7200};          // of those that wait for the chief
  std::string summary_dir;              // empty: checkpoint_dir

  // Ours. The names of TensorFlow end here.
  ChiefOptions chief;                   // without checkpoints only its preemption counts
  std::shared_ptr<SaveAttempts> saves;  // how saves that fail are dealt with, and their status; nullptr: the defaults
  RestartOptions restart;
  FileSystem* files = &FileSystem::real();
  Coordinator coordinator{};  // a stop of it ends the training (StopSignals); its clock measures all times
};

// What a training needs of a monitored session: for the chief one that recovers from the newest checkpoint or
// initialises the model, with the chief's hooks, then those that count steps, write summaries and take checkpoints,
// then the program's; for the others one that waits for the chief, with the program's hooks. The graph has a global
// step, as these hooks need it. The tenure of the chief begins and ends with the session.
// InvalidArgumentError: the chief has a mirror, but no checkpoint_dir.
MonitoredSessionOptions monitored_session_options(const MonitoredTrainingSessionOptions& options);

// Calls `body` in such a session, and closes it: MonitoredSession::monitor().
//
//   monitored_training_session({.graph = &graph, .checkpoint_dir = "runs/demo"}, [&](MonitoredSession& session) {
//     while (!session.should_stop()) session.run(train_op);
//   });
//
// A kill leaves behind the newest checkpoint; an end without an error, one of the last step. DirectoryLockedError:
// checkpoint_dir has a chief. DirectoryLostError: it has another one now, because this one was silent for too long.
void monitored_training_session(const MonitoredTrainingSessionOptions& options,
                                const std::function<void(MonitoredSession&)>& body);

}  // namespace longhaul
