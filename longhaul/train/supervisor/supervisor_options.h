#pragma once

#include <cstdint>
#include <string>

#include "longhaul/base/defaulted.h"
#include "longhaul/base/maybe_owned.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/sessions/session_manager.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

// What becomes of the saves of a Supervisor, and which services it has that TensorFlow's has not.
struct ServiceOptions {
  bool save_at_end = true;  // whether managed_session() takes a last checkpoint when it ends without an error

  // So many saves that fail in a row, those tried again included, end the training with the last one's error
  // (max_failed_saves; 0: none do); for so long the save at the end is tried again (last_save_timeout), before its
  // error is the training's. The clock is the Supervisor's.
  SaveAttemptsOptions saves;

  // How many steps lie between digests of all variables in the events of logdir (train/reporting/weight_digest.h), by
  // which two runs can be compared; 0: there are none. Where several threads make steps, a digest is of the step that
  // it names.
  int64_t digest_every_n_steps = 0;
};

// What is kUseDefault is the first element of the graph's collection of that name ("ready_op", "init_op", ...); if the
// collection is empty, the operation described here is made and put there. kNone switches the thing off.
//
// What is passed by a plain pointer outlives the Supervisor and all its threads, also those that outlive
// stop_grace_secs (which stop() names) or, under a preemption, the time that is left (which the log names). A saver or
// a writer that is shared is kept by the threads that use it.
struct SupervisorOptions {
  Graph* graph = nullptr;                      // nullptr: the default graph
  Defaulted<Output> ready_op;                  // names of all variables that are not initialised; none: not checked
  Defaulted<Output> ready_for_local_init_op;   // default: none
  bool is_chief = true;                        // who initialises, recovers, checkpoints and writes summaries
  Defaulted<OpList> init_op;                   // initialises all global variables
  Feeds init_feed_dict;                        // for init_op
  Defaulted<OpList> local_init_op;             // initialises local variables and tables
  std::string logdir;                          // empty: no checkpoints and no summaries
  Defaulted<Output> summary_op;                // all summaries of the graph, merged
  Defaulted<MaybeOwned<Saver>> saver;          // of all global variables, if there are any
  Defaulted<Output> global_step;               // the tensor "global_step:0", if there is one
  Seconds save_summaries_secs{120};            // 0: no summaries
  SaveInterval save_model_secs{Seconds{600}};  // 0: no checkpoints; kAuto: as it loses the least time
  Seconds recovery_wait_secs{30};              // between two looks, where something is waited for
  Seconds stop_grace_secs{120};                // how long threads may take to stop
  std::string checkpoint_basename = "model.ckpt";
  SessionManager* session_manager = nullptr;         // nullptr: one made of the above
  Defaulted<MaybeOwned<FileWriter>> summary_writer;  // one for logdir
  InitFn init_fn;                                    // called after init_op, not when the model is recovered
  RunOptions local_init_run_options;

  // Ours. The names of TensorFlow end here.
  ChiefOptions chief;
  ServiceOptions services;
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

}  // namespace longhaul
