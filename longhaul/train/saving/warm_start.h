#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "longhaul/io/file.h"
#include "longhaul/ops/partitioned_variable.h"

namespace longhaul {

// What is initialised from a checkpoint: by name (a variable, a partitioned one, or all below "scope/"), or itself.
using WarmStartTarget = std::variant<std::string, Variable, PartitionedVariable>;

// From a name in the checkpoint to what is initialised from it:
//   {"layer1/w", "encoder/w"}      one tensor, one variable
//   {"layer1/", "encoder/"}        every variable below encoder/ from the tensor of that name below layer1/
//   {"/", "encoder/"}              ... from the tensor of that name at the top
//   {"embedding", table}           a Variable, or a PartitionedVariable: its parts take their slices
using AssignmentMap = std::vector<std::pair<std::string, WarmStartTarget>>;

// Lets variables begin with the values of a checkpoint (its prefix, or the directory of which it is the latest) instead
// of those they were made with. Operations are never changed, so each variable gets a second initializer,
// "<name>/checkpoint_initializer", and the graph's collections name that one from now on: global_variables_initializer,
// and so a Supervisor's init_op, use it. A Variable that the caller holds keeps its old initializer().
//
//   init_from_checkpoint(graph, "runs/pretrained", {{"encoder/", "encoder/"}});
//   Supervisor sv({.graph = &graph, .logdir = "runs/fine"});       // its init_op reads runs/pretrained
//
// The checkpoint is read whenever the initializer runs; it must still be there then. Where the run has a checkpoint of
// its own already, that is restored, as always.
//
// Everything that does not fit is reported at once, by name and shape, and then nothing is changed. NotFoundError: no
// such checkpoint, no such tensors, no such variables. InvalidArgumentError: shapes or dtypes differ; a scope goes with
// a name. FailedPreconditionError: an init op knows the old initializers already.
void init_from_checkpoint(Graph& graph, const std::string& prefix_or_directory, const AssignmentMap& assignments,
                          FileSystem& files = FileSystem::real());

}  // namespace longhaul
