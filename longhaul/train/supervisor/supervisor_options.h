#pragma once

#include <string>

#include "longhaul/base/defaulted.h"
#include "longhaul/base/maybe_owned.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/sessions/session_manager.h"

namespace longhaul {

class Preemption;

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
  // For a saver that leaves out global variables: when the model is recovered, the initializers of those that are not
  // initialised then are run, as ready_op names them.
  bool initialize_missing = false;
  // Whether checkpoints count that no state file names. false, as in TensorFlow: only what `logdir/checkpoint` lists is
  // restored, and of the mirror what its own state file lists as well. To remove that file is to begin anew, with the
  // mirror left alone, and old checkpoints are replaced by new ones of their names. One that is there and cannot be
  // used (empty, damaged, a link to nothing) is a DataLossError; so it is where all that it lists are damaged.
  bool search_directory = true;

  // Whether the chief locks logdir while it trains, so that a second one is refused (io/directory_lock.h).
  bool lock_logdir = true;
  Seconds lock_lease_secs{60};  // a chief on another machine that is silent for longer counts as dead
  bool lock_with_flock = true;  // false: by its record alone, where flock() hangs or lies

  // Whether the chief that has logdir locked keeps a journal of its runs there (train/journal/run_journal.h): for
  // kAuto, for the account of lost time, and for what follows. A checkpoint that two runs died of, as it seems, before
  // they had saved another is skipped in favour of the one before it, unless that is not wanted
  // (RunHistory::deaths_after()).
  bool keep_journal = true;
  bool skip_crashing_checkpoints = true;

  // Whether managed_session() takes a last checkpoint when it ends without an error.
  bool save_at_end = true;

  // So many saves that fail in a row, those tried again included, end the training with the last one's error; 0: none
  // do (train/checkpointing/save_attempts.h). For so long the save at the end is tried again, before its error is the
  // training's.
  int max_failed_saves = 0;
  Seconds last_save_timeout_secs{30};

  // Ends the training as schedulers do, with a last checkpoint if they leave the time for one, and takes one when asked
  // to (train/signals/preemption.h); nullptr: without.
  Preemption* preemption = nullptr;

  // A second place for the checkpoints of logdir, with a rule of its own, that is searched as well when a training
  // recovers (train/checkpointing/checkpoint_mirror.h); without a directory there is none.
  MirrorOptions mirror;

  // How many steps lie between digests of all variables in the events of logdir (train/reporting/weight_digest.h), by
  // which two runs can be compared; 0: there are none. Where several threads make steps, a digest is of the step that
  // it names.
  int64_t digest_every_n_steps = 0;

  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

}  // namespace longhaul
