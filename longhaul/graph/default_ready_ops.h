#pragma once

#include <set>
#include <string>

#include "longhaul/graph/graph.h"

namespace longhaul {

// The names of the operations that tell which of the graph's variables are not initialised, as a Supervisor or a
// Scaffold makes them where the program has none: over the global variables, or these and the local ones. One whose
// result another operation takes is none.
std::set<std::string> default_ready_ops(const Graph& graph);

}  // namespace longhaul
