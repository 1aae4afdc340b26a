#pragma once

#include <string>
#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// The full name of a new variable in a scope. AlreadyExistsError: the name is taken.
std::string new_variable_name(const Scope& scope, std::string_view name);

}  // namespace longhaul::ops
