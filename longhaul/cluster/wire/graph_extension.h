#pragma once

#include "longhaul/graph/graph.h"
#include "longhaul/proto/graph.pb.h"

namespace longhaul {

// Adds a client's nodes to a session's graph, all of them or none, under their own names. Their inputs may be among
// them or in the graph. One thread at a time; others may use the graph meanwhile.
//   - InvalidArgumentError, also in TensorFlow's words: a name of a node or of an input is malformed ("Illegal op
//     name"), or the name of a node is in the graph already ("which was created by a previous call")
//   - the errors of import_graph_def(), which checks what comes from outside
void extend_graph(Graph& graph, const proto::GraphDef& nodes);

// The first nodes of an empty graph, with the same errors; it is of no use after one.
void start_graph(Graph& graph, const proto::GraphDef& nodes);

}  // namespace longhaul
