#pragma once

#include <string_view>
#include <vector>

#include "longhaul/ops/saveable.h"

namespace longhaul::ops {

// In checkpoints, the state of an operation's random numbers is named by this prefix and the operation's name.
inline constexpr std::string_view kRandomStatePrefix = "longhaul/random/";

// The random numbers of a graph's operations (dropout, randn, random_shuffle, ...) in the form for a saver: for each
// operation three int64, the key that determines its numbers, the number of training steps that have drawn, and that of
// other runs. Operations that only initialise variables are excluded. Operations that read the states are added to the
// graph, once.
std::vector<Saveable> random_saveables(Graph& graph);

}  // namespace longhaul::ops
