#pragma once

#include <string>
#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// The whole name of a variable that a scope gets. AlreadyExistsError: something has that name.
std::string new_variable_name(const Scope& scope, std::string_view name);

}  // namespace longhaul::ops
