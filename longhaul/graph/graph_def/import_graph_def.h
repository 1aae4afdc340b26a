#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "longhaul/graph/graph.h"
#include "longhaul/proto/graph.pb.h"

namespace longhaul {

struct ImportOptions {
  // A prefix for all names. If it is taken, it gets a suffix, unless it ends with a '/'. Empty: names are kept.
  std::string scope{};
  // Replacements for inputs of the nodes, by name: "x:1", "x" (short for "x:0") or, for a control input, "^x". The
  // replaced nodes need not exist.
  std::map<std::string, Output> input_map{};
  std::vector<std::string> return_elements{};  // operations ("x") and tensors ("x:0") by their names in the file
  bool clear_devices = false;
  // The scopes of the nodes' names count as entered: a later one of the same name gets a suffix.
  bool takes_scopes = true;
  uint64_t most_constant_bytes = uint64_t{4} << 30;  // for all constants together
  int64_t most_nodes = int64_t{1} << 22;             // an imported node takes about a kilobyte

  // The graph is a task's part of a run (placement/part_graph.h), which may send and receive tensors, and these are the
  // values of its constants whose nodes have none.
  bool is_part = false;
  std::map<std::string, Tensor> constants{};
};

using GraphElement = std::variant<Operation, Output>;

struct ImportedGraph {
  std::string prefix;                 // of all names: "tower_0/", or empty
  std::vector<Operation> operations;  // one for each node, in the order of the nodes
  std::vector<GraphElement> returned;
};

// Adds the nodes to `graph`. They may be in any order. Exporting an imported graph gives the same nodes again, and
// operations added afterwards get the same names as they would in the original graph. The attr _output_shapes is
// dropped (shapes are inferred again), _class is kept.
//
// Before anything is added:
//   UnimplementedError: valid, but not supported. Lists everything: the types of operations that no catalog has, with
//     the number of nodes of each (and the header for libtorch's, if none are installed), functions, functions of the
//     program (which no file can hold), loops.
//   InvalidArgumentError: malformed. Transfers between tasks, unless it is a part of a run; a duplicate name, or one
//   taken in `graph`; an input that does not exist; control
//     inputs before others; keys of input_map or return_elements that match nothing; a newer reader is required.
//   ResourceExhaustedError: the constants are larger than `most_constant_bytes`, or there are more than `most_nodes`.
//   FailedPreconditionError: the graph is finalized.
// Later errors name the node: its type does not allow the inputs or attrs, an output does not exist, or an attr is
// malformed. The nodes before it stay in the graph.
ImportedGraph import_graph_def(Graph& graph, const proto::GraphDef& graph_def, const ImportOptions& options = {});

}  // namespace longhaul
