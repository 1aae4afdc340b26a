#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/base/defaulted.h"
#include "longhaul/base/maybe_owned.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/divergence/divergence_options.h"
#include "longhaul/train/hangs/hang_options.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/reporting/progress.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/sessions/session_manager.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

// How a Supervisor handles failed saves, and the services that TensorFlow's Supervisor does not have.
struct ServiceOptions {
  bool save_at_end = true;  // whether managed_session() takes a final checkpoint when it ends without an error

  // max_failed_saves: after this many consecutive failures, retries included, training ends with the error of the last;
  // 0: failed saves never end training. last_save_timeout: how long the final save is retried before its error is
  // thrown. The clock is the Supervisor's.
  SaveAttemptsOptions saves{};

  // The number of steps between digests of all variables, which are written to logdir's events so that two runs can be
  // compared (train/reporting/weight_digest.h); 0: no digests. If several threads make steps, a digest belongs to the
  // step that it names.
  int64_t digest_every_n_steps = 0;

  // When a training that makes no steps is reported with the stacks of its threads, and when that ends the process.
  HangOptions hang{};

  // Shows the progress: steps, rate, time left, the given values, the last checkpoint; in every process that has this
  // option. nullopt: nothing is shown.
  std::optional<ProgressOptions> progress{};

  // The way back if a loss that the program tells (Supervisor::look_at_loss()) is NaN, infinite or far too high: the
  // next session restores the last good checkpoint, on servers for all workers. Needs a logdir, the journal and a
  // global step. nullopt: nothing watches the loss.
  std::optional<DivergenceOptions> divergence{};
};

// An option that is kUseDefault takes its value from the first element of the graph's collection of that name
// ("ready_op", "init_op", ...). If the collection is empty, the operation described here is created and added to it.
// kNone switches the feature off.
//
// Objects passed by plain pointer must outlive the Supervisor and all its threads, including those that outlive
// stop_grace_secs (stop() names them) or, under a preemption, the remaining time (the log names them). A shared saver
// or writer is kept alive by the threads that use it.
struct SupervisorOptions {
  Graph* graph = nullptr;                       // nullptr: the default graph
  Defaulted<Output> ready_op{};                 // names of all variables that are not initialised; none: not checked
  Defaulted<Output> ready_for_local_init_op{};  // default: none
  bool is_chief = true;                         // initialises, restores, checkpoints and writes summaries
  Defaulted<OpList> init_op{};                  // initialises all global variables
  Feeds init_feed_dict{};                       // for init_op
  Defaulted<OpList> local_init_op{};            // initialises local variables and tables
  std::string logdir{};                         // empty: no checkpoints and no summaries
  Defaulted<Output> summary_op{};               // all summaries of the graph, merged
  Defaulted<MaybeOwned<Saver>> saver{};         // default: of all global variables, if any
  Defaulted<Output> global_step{};              // default: the tensor "global_step:0", if any
  Seconds save_summaries_secs{120};             // 0: no summaries
  SaveInterval save_model_secs{Seconds{600}};   // 0: no checkpoints; kAuto: chosen to lose the least time
  Seconds recovery_wait_secs{30};               // between two looks at most, during a wait for the chief
  Seconds stop_grace_secs{120};                 // how long threads may take to stop
  std::string checkpoint_basename = "model.ckpt";
  SessionManager* session_manager = nullptr;           // nullptr: one made from the above
  Defaulted<MaybeOwned<FileWriter>> summary_writer{};  // one for logdir
  InitFn init_fn{};                                    // called after init_op; not called for a restored model
  RunOptions local_init_run_options{};

  // Longhaul's own; TensorFlow's names end here.
  ChiefOptions chief{};
  ServiceOptions services{};
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

}  // namespace longhaul
