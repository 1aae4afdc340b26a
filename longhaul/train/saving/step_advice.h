#pragma once

#include <string>

#include "longhaul/graph/graph.h"

namespace longhaul {

// What to do if the global step does not move, as a part of a message: for a bound program (torch_training(), or a
// Trainer), if the graph has one, else `otherwise`.
std::string step_advice(const Graph& graph, const std::string& otherwise);

}  // namespace longhaul
