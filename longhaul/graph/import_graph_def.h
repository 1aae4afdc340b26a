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
  // Goes before all names; made unique by a suffix where it is taken, unless it ends with a '/'. Empty: names stay.
  std::string scope;
  // What the nodes take instead of what they name: "x:1", "x" (which is "x:0") or, as a control input, "^x". The nodes
  // replaced need not be there.
  std::map<std::string, Output> input_map;
  std::vector<std::string> return_elements;  // operations ("x") and tensors ("x:0") by their names in the file
  bool clear_devices = false;
  uint64_t most_constant_bytes = uint64_t{4} << 30;  // for all constants together
  int64_t most_nodes = int64_t{1} << 22;             // each takes about a kilobyte once it is imported
};

using GraphElement = std::variant<Operation, Output>;

struct ImportedGraph {
  std::string prefix;                 // what stands before all names: "tower_0/", or nothing
  std::vector<Operation> operations;  // one for each node, in the order of the nodes
  std::vector<GraphElement> returned;
};

// Adds the nodes to `graph`, in whatever order they are. Exporting what was imported gives the same nodes again; names
// that are given afterwards are those that they would be in the original graph. The attr _output_shapes is dropped
// (shapes are inferred anew), _class is kept.
//
// Before anything is added:
//   UnimplementedError: valid, but not for us. It lists all that is: the types of operation that no catalog has with
//     how many nodes each (and which header brings libtorch's, where none are installed), functions, functions of the
//     program (which no file can hold), loops.
//   InvalidArgumentError: malformed. A name twice or taken in `graph`; an input that is not there; control inputs
//   before
//     others; keys of input_map and return_elements that nobody has; a reader newer than this is wanted.
//   ResourceExhaustedError: the constants are larger than `most_constant_bytes`, or there are more than `most_nodes`.
//   FailedPreconditionError: the graph is finalized.
// Later errors name the node: what its type does not allow, an output that does not exist, a malformed attr. Nodes
// before it stay in the graph.
ImportedGraph import_graph_def(Graph& graph, const proto::GraphDef& graph_def, const ImportOptions& options = {});

}  // namespace longhaul
