#pragma once

#include <functional>
#include <string>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

// A part of a graph that a Saver saves and restores as a unit. The Saver makes one for each variable. Describe any
// other stateful object (a table, a position in the data) like this, and add it by ops::add_saveable:
//
//   // keys and values are outputs of operations that read the state
//   ops::add_saveable(graph, {.name = "words",
//                             .op = table,
//                             .parts = {{"words-keys", keys}, {"words-values", values}},
//                             .restore = [=](const Scope& scope, const std::vector<Output>& restored) {
//                               const std::vector<Output> inputs{table.output(), restored[0], restored[1]};
//                               return scope.add("LookupTableImportV2", "import", inputs);
//                             }});
//
// A save reads each part once, in the run that reads all variables. A restore reads no part.
struct Saveable {
  struct Part {
    std::string key{};    // its name in checkpoints
    Output value{};       // the tensor to save; the restored tensor has its dtype, and its shape as far as known
    std::string slice{};  // empty, or the slice of a larger tensor that it is: "5 10 0,5:2,1", full shape and slice
  };
  // Adds operations that set the state to the restored values, a tensor for each part. Returns an operation that runs
  // them all.
  using Restore = std::function<Operation(const Scope& scope, const std::vector<Output>& restored)>;

  std::string name{};  // of the object; savers sort by it
  Operation op{};      // the saved object, which a saver accepts under one name only; optional
  std::vector<Part> parts{};
  Restore restore{};
  // Whether a checkpoint may lack it; only for an object with one part. The restore then gets an empty tensor, and a
  // warning is logged.
  bool optional = false;
};

namespace ops {

// Adds it to collections::kSaveableObjects. Savers without a var_list save it with the variables.
void add_saveable(Graph& graph, Saveable saveable);
std::vector<Saveable> saveable_objects(const Graph& graph);

}  // namespace ops
}  // namespace longhaul
