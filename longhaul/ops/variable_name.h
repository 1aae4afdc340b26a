#pragma once

#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// AlreadyExistsError: the scope has something of that name, so it cannot become a variable's.
void check_variable_name(const Scope& scope, std::string_view name);

}  // namespace longhaul::ops
