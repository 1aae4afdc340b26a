#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/defaulted.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/divergence/divergence_options.h"
#include "longhaul/train/hangs/hang_options.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/monitored/monitored_session.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

// How a monitored training run handles failures that need not end it.
struct FailureOptions {
  std::shared_ptr<SaveAttempts> saves{};  // how failed saves are handled, and their status; nullptr: the defaults
  RestartOptions restart{};               // how often a lost session is replaced, and how soon
  HangOptions hang{};                     // when runs that do not go on are reported, or end the process
  // The way back from bad losses, for the chief, also of a model on servers: a DivergenceHook watches this tensor,
  // and the session is replaced by one that restores the last good checkpoint. Invalid: losses are not watched.
  Output loss{};
  DivergenceOptions divergence{};
};

// Of each pair of options in time and in steps, give at most one. kNone and 0 switch the feature off.
struct MonitoredTrainingSessionOptions {
  Graph* graph = nullptr;                // nullptr: the default graph
  std::string master{};                  // "": this process
  bool is_chief = true;                  // initialises, restores, checkpoints and writes summaries; others wait for it
  std::string checkpoint_dir{};          // to recover from and to checkpoint to; empty: neither
  std::shared_ptr<Scaffold> scaffold{};  // nullptr: one with the defaults
  SessionRunHooks hooks{};
  SessionRunHooks chief_only_hooks{};
  Defaulted<SaveInterval> save_checkpoint_secs{};  // default: 600, unless steps are given; kAuto: loses the least time
  Defaulted<int64_t> save_checkpoint_steps{};      // default: none
  Defaulted<Seconds> save_summaries_secs{};        // default: none
  Defaulted<int64_t> save_summaries_steps{};       // default: 100, unless secs are given
  SessionOptions config{};
  Seconds stop_grace_period_secs{120};  // how long threads may take to stop
  int64_t log_step_count_steps = 100;   // how often the steps per second are written; 0: never
  Seconds max_wait_secs{7200};          // how long others wait for the chief, and all for the tasks of servers
  std::string summary_dir{};            // empty: checkpoint_dir

  // Longhaul's own; TensorFlow's names end here.
  ChiefOptions chief{};  // without checkpoints only its preemption and its status page are used
  FailureOptions failures{};
  FileSystem* files = &FileSystem::real();
  Coordinator coordinator{};  // stopping it ends training (StopSignals); its clock measures all times
};

// The options of a monitored session for training. The chief's session restores the newest checkpoint or initialises
// the model. Its hooks are, in this order, the chief's hooks, those that count steps, write summaries and take
// checkpoints, one that watches for hangs, and the program's. A session of another process waits for the chief and has
// only the program's hooks and that watch.
// The graph must have a global step, which these hooks need. The chief's tenure begins and ends with the session.
// InvalidArgumentError: the chief has a mirror, but no checkpoint_dir; or losses are watched, and there is nothing to
// go back to.
MonitoredSessionOptions monitored_session_options(const MonitoredTrainingSessionOptions& options);

// Calls `body` in such a session and closes it: MonitoredSession::monitor().
//
//   monitored_training_session({.graph = &graph, .checkpoint_dir = "runs/demo"}, [&](MonitoredSession& session) {
//     while (!session.should_stop()) session.run(train_op);
//   });
//
// If the process is killed, the newest checkpoint remains. If training ends without an error, there is a checkpoint of
// the last step. DirectoryLockedError: checkpoint_dir has another chief. DirectoryLostError: another chief took it
// over, because this one was silent for too long.
void monitored_training_session(const MonitoredTrainingSessionOptions& options,
                                const std::function<void(MonitoredSession&)>& body);

}  // namespace longhaul
