#pragma once

#include <functional>
#include <string>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

// Something of a graph that a Saver saves and restores as one. Variables are made into it by the Saver; anything else
// that keeps a state (a table, a position in the data) describes itself so, and is listed by ops::add_saveable:
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
    std::string key;  // its name in checkpoints
    Output value;     // what is saved; its dtype is what is restored, and its shape as far as it is known
    std::string
        slice;  // empty, or the part that it is of a larger tensor: "5 10 0,5:2,1", the full shape and the slice
  };
  // Adds the operations that put back what was restored, a tensor for each part, and returns the one that does it all.
  using Restore = std::function<Operation(const Scope& scope, const std::vector<Output>& restored)>;

  std::string name;  // of the whole: savers sort by it
  Operation op;      // what is saved: in one saver it has one name. May be left out.
  std::vector<Part> parts;
  Restore restore;
  // Of one part: a checkpoint may lack it. Then the restore is given an empty tensor, and a warning is logged.
  bool optional = false;
};

namespace ops {

// Lists it in collections::kSaveableObjects: savers without a var_list save it with the variables.
void add_saveable(Graph& graph, Saveable saveable);
std::vector<Saveable> saveable_objects(const Graph& graph);

}  // namespace ops
}  // namespace longhaul
