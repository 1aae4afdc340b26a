#pragma once

#include <memory>
#include <string>

#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/sessions/graph_defaults.h"
#include "longhaul/train/supervisor/supervisor_options.h"
#include "longhaul/train/tenure/chief_tenure.h"
#include "longhaul/train/tenure/training_events.h"

// The objects that a Supervisor makes from its options, in this order.

namespace longhaul {

class WayBack;

// Returns the effective options: with a graph and absolute paths and, if this process is not the chief, without
// everything that only a chief does. InvalidArgumentError: there is a mirror but no logdir; several processes cannot
// share the graph.
SupervisorOptions effective_options(SupervisorOptions options);

std::shared_ptr<SaveAttempts> save_attempts(const SupervisorOptions& options);

// Null: nothing watches the loss. Adds what checkpoints have of it to the graph, unless the saver is the program's own,
// which is made. InvalidArgumentError: check_divergence(), or no logdir. AlreadyExistsError: the graph has one.
std::unique_ptr<WayBack> way_back(const SupervisorOptions& options);

// The operations that the options leave to the graph's collections. Errors: resolve_defaults(); and of a service that
// needs a global step where there is none, or of a value of the line of progress that the graph does not have.
GraphDefaults graph_defaults(const SupervisorOptions& options);

// The place of the checkpoints. Errors of the file system: the logdir cannot be written to.
struct CheckpointPlace {
  std::string save_path;        // absolute; empty: there is no logdir
  bool relative_paths = false;  // SaveOptions::relative_paths: the given logdir was relative
};
CheckpointPlace checkpoint_place(const std::string& given_logdir, const SupervisorOptions& options);

ChiefTenureOptions tenure_options(const SupervisorOptions& options, std::shared_ptr<SaveAttempts> saves);
TrainingEvents training_events(const SupervisorOptions& options, const Saver* saver);

// Returns the program's session manager, or a new one for these defaults that skips the checkpoints for which the
// tenure gives a skip reason. The tenure must outlive it.
std::shared_ptr<SessionManager> session_manager(const SupervisorOptions& options, const GraphDefaults& defaults,
                                                const Coordinator& coord, ChiefTenure& tenure);

}  // namespace longhaul
