#pragma once

#include <string>
#include <vector>

#include "longhaul/session/session.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// The operations with which a SessionManager makes a model ready.
struct ReadinessOps {
  Output ready_op, ready_for_local_init_op;  // invalid: none
  std::vector<Operation> local_init_op;
};

// The names of the variables that would have no value after a restore with this saver: the ready operations check them,
// but neither the saver restores them nor local_init_op sets them in time. Sorted.
std::vector<std::string> missing_after_restore(const Graph& graph, const Saver& saver, const ReadinessOps& ops);

// Warns about these, because a training run that begins with such a saver could never be restarted.
void warn_of_missing_after_restore(const std::vector<std::string>& names);

// Runs, in one run, the initializers of only those global variables that a ready operation reports as not initialised.
// Returns the names of these variables.
std::vector<std::string> initialize_missing(Session& session, const ReadinessOps& ops, const Feeds& feeds);

}  // namespace longhaul
