#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/ops/partitioned_variable.h"

namespace longhaul {

// The target of an initialisation from a checkpoint: the name of a variable or a partitioned variable, "scope/" for all
// variables below it, or the variable itself.
using WarmStartTarget = std::variant<std::string, Variable, PartitionedVariable>;

// Maps names in the checkpoint to the variables to initialise from them:
//   {"layer1/w", "encoder/w"}      one tensor, one variable
//   {"layer1/", "encoder/"}        every variable below encoder/ from the tensor of that name below layer1/
//   {"/", "encoder/"}              ... from the tensor of that name at the top
//   {"embedding", table}           a Variable, or a PartitionedVariable: its parts take their slices
using AssignmentMap = std::vector<std::pair<std::string, WarmStartTarget>>;

// Initialises variables from a checkpoint (its prefix, or a directory, for its latest one) instead of from their own
// initial values. Operations never change, so each variable gets a second initializer, "<name>/checkpoint_initializer",
// which replaces the first in the graph's collections. From then on, global_variables_initializer uses it, and so does
// a Supervisor's init_op. A Variable that the caller holds keeps its old initializer().
//
//   init_from_checkpoint(graph, "runs/pretrained", {{"encoder/", "encoder/"}});
//   Supervisor sv({.graph = &graph, .logdir = "runs/fine"});       // its init_op reads runs/pretrained
//
// The checkpoint is read whenever the initializer runs, and must still exist then. If the training run already has a
// checkpoint of its own, that is restored instead, as always.
//
// All mismatches are reported together, by name and shape. After an error, nothing has changed. NotFoundError: there
// are no such checkpoint, tensors or variables. InvalidArgumentError: shapes or dtypes differ; a scope is mapped to a
// single name, or the reverse. FailedPreconditionError: an existing init op uses the old initializers.
void init_from_checkpoint(Graph& graph, const std::string& prefix_or_directory, const AssignmentMap& assignments,
                          FileSystem& files = FileSystem::real());

}  // namespace longhaul
