#pragma once

#include <cstdint>

#include "longhaul/proto/graph.pb.h"

namespace longhaul {

// The checks that import_graph_def makes before it adds anything (for the errors, see there). Functions of the program
// are supported in a part of a run, in the program's own process (lent_functions.h).
void check_supported(const proto::GraphDef& graph_def, bool is_part = false);
void check_no_transfers(const proto::GraphDef& graph_def);
void check_version(const proto::GraphDef& graph_def);
void check_node_count(const proto::GraphDef& graph_def, int64_t most);
void check_constants(const proto::GraphDef& graph_def, uint64_t most_bytes);

// The memory that it takes as a Tensor, where one value may stand for many. UINT64_MAX: more than can be counted.
uint64_t constant_bytes(const proto::TensorProto& tensor);

}  // namespace longhaul
