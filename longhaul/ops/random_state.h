#pragma once

#include <string_view>
#include <vector>

#include "longhaul/ops/saveable.h"

namespace longhaul::ops {

// What checkpoints call the state of an operation's random numbers: this, and then the operation's name.
inline constexpr std::string_view kRandomStatePrefix = "longhaul/random/";

// The random numbers of a graph's operations (dropout, randn, random_shuffle, ...) as a saver takes them: for each
// operation three int64, the key that its numbers follow from, how many training steps have drawn, and how many other
// runs. Left out are those that only initialise variables. Operations that read the states are added to the graph,
// once.
std::vector<Saveable> random_saveables(Graph& graph);

}  // namespace longhaul::ops
