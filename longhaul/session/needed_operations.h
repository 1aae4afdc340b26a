#pragma once

#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// The operations that must run for `targets`, including these, when values for `feeds` are given; in no particular
// order.
std::vector<Operation> needed_operations(const std::vector<Operation>& targets, const std::vector<Output>& feeds = {});

}  // namespace longhaul
