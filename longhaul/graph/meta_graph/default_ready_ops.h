#pragma once

#include <set>
#include <string>

#include "longhaul/graph/graph.h"

namespace longhaul {

// The names of the operations that report the graph's uninitialised variables, as a Supervisor or a Scaffold creates
// them if the program has none: for the global variables, or for these and the local ones. An operation whose result is
// used by another one is left out.
std::set<std::string> default_ready_ops(const Graph& graph);

}  // namespace longhaul
