#pragma once

#include <string>
#include <vector>

#include "longhaul/graph/scope.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/proto/saver.pb.h"

namespace longhaul {

// A variable and its name in checkpoints; without one, its name in the graph.
struct SavedVariable {
  SavedVariable(const Variable& variable) : SavedVariable(variable.info()) {}
  SavedVariable(const VariableInfo& variable) : SavedVariable(variable.name(), variable) {}
  SavedVariable(std::string name, const Variable& variable) : SavedVariable(std::move(name), variable.info()) {}
  SavedVariable(std::string name, const VariableInfo& variable) : name(std::move(name)), variable(variable) {}

  std::string name;
  VariableInfo variable;
};

// The part of a graph that saves and restores it.
struct SaverNodes {
  struct SavedTensor {
    std::string name;  // in checkpoints
    Output read;
  };
  std::vector<SavedTensor> tensors;  // by name
  Output filename;                   // what is fed: "save/Const:0"
  Output save;                       // "save/control_dependency:0"
  Operation restore;                 // "save/restore_all"
};

// Adds the operations under `scope`, with the names that TensorFlow's Saver gives them. InvalidArgumentError: two
// variables under one name ("same name"), one under two names.
SaverNodes add_saver_nodes(const Scope& scope, std::vector<SavedVariable> variables, const std::string& filename);

// Finds them again. NotFoundError, InvalidArgumentError: the graph has nothing of the kind.
SaverNodes find_saver_nodes(const Graph& graph, const proto::SaverDef& saver_def);

}  // namespace longhaul
