#pragma once

#include <memory>
#include <string>

#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/sessions/graph_defaults.h"
#include "longhaul/train/supervisor/supervisor_options.h"
#include "longhaul/train/tenure/chief_tenure.h"
#include "longhaul/train/tenure/training_events.h"

// What a Supervisor makes of its options, in this order.

namespace longhaul {

// The options as they count: with a graph, with absolute paths, and for who is not the chief without all that only a
// chief does. InvalidArgumentError: a mirror without a logdir; a graph that several processes cannot share.
SupervisorOptions effective_options(SupervisorOptions options);

std::shared_ptr<SaveAttempts> save_attempts(const SupervisorOptions& options);

// What the options leave to the graph's collections. Errors: resolve_defaults().
GraphDefaults graph_defaults(const SupervisorOptions& options);

// Where the checkpoints go. What the file system throws: the logdir cannot be written to.
struct CheckpointPlace {
  std::string save_path;        // absolute; empty: there is no logdir
  bool relative_paths = false;  // SaveOptions::relative_paths: the logdir was given as a relative one
};
CheckpointPlace checkpoint_place(const std::string& given_logdir, const SupervisorOptions& options);

ChiefTenureOptions tenure_options(const SupervisorOptions& options, std::shared_ptr<SaveAttempts> saves);
TrainingEvents training_events(const SupervisorOptions& options, const Saver* saver);

// The program's own, or one for these defaults, which skips what the tenure says: that outlives it.
std::shared_ptr<SessionManager> session_manager(const SupervisorOptions& options, const GraphDefaults& defaults,
                                                const Coordinator& coord, ChiefTenure& tenure);

}  // namespace longhaul
