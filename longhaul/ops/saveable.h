#pragma once

#include <functional>
#include <string>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

// A part of a graph that a Saver saves and restores as a unit. The Saver makes one for each variable; any other
// stateful object (a table, a position in the data) is described like this, and added by ops::add_saveable:
//
//   const Output keys = ..., values = ...;                            // operations that read the state
//   ops::add_saveable(graph, {.name = "words",
//                             .op = table,
//                             .parts = {{"words-keys", keys}, {"words-values", values}},
//                             .restore = [=](const Scope& scope, const std::vector<Output>& restored) {
//                               return scope.add("LookupTableImportV2", "import", {table, restored[0], restored[1]});
//                             }});
//
// Each part is read once in a save, in the run that reads all variables; a restore reads none of them.
struct Saveable {
  struct Part {
    std::string key{};    // its name in checkpoints
    Output value{};       // the saved tensor; the restored one has its dtype, and its shape as far as known
    std::string slice{};  // empty, or its part of a larger tensor: "5 10 0,5:2,1", full shape and slice
  };
  // Adds the operations that set the restored values, a tensor for each part, and returns one that does all of it.
  using Restore = std::function<Operation(const Scope& scope, const std::vector<Output>& restored)>;

  std::string name{};  // of the object: savers sort by it
  Operation op{};      // the saved object: a saver has it under one name only; optional
  std::vector<Part> parts{};
  Restore restore{};
  // For one part only: a checkpoint may lack it. Then the restore gets an empty tensor, and a warning is logged.
  bool optional = false;
};

namespace ops {

// Adds it to collections::kSaveableObjects: savers without a var_list save it with the variables.
void add_saveable(Graph& graph, Saveable saveable);
std::vector<Saveable> saveable_objects(const Graph& graph);

}  // namespace ops
}  // namespace longhaul
