#pragma once

#include <string>
#include <string_view>

#include "longhaul/graph/graph.h"

namespace longhaul {

// The message of a NotFoundError for a name that is not in the graph: it says so, and suggests the name that was
// perhaps meant: the nearest one, or the tensor of the named operation ("loss:0" for "loss").
std::string missing_operation_text(const Graph& graph, std::string_view name);
std::string missing_tensor_text(const Graph& graph, std::string_view name);

// The tensors that an operation returns: "x:0", "x:0 and x:1", "x:0 to x:7"; "none".
std::string tensors_text(const Operation& op);

}  // namespace longhaul
