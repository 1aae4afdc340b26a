#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {

// A variable that accompanies another one and is not trained: an optimizer's momentum, a moving average. Its name is
// "PRIMARY/NAME", with a suffix if that is taken, prefixed only by variable scopes; it is on the primary's device. For
// a slice of a partitioned variable it is the same slice of the complete variable's slot. `initial_value` has the
// primary's shape.
Variable slot_variable(const Scope& scope, const Variable& primary, std::string_view name,
                       const std::function<Output(const Scope& scope)>& initial_value);

// `name`, with a suffix (_1, _2, ...) if it is taken. Does not reserve it.
std::string free_name(const Graph& graph, const std::string& name);

}  // namespace longhaul::ops
