#pragma once

#include <string>
#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// How the sessions of a task find a variable, a queue, a reader or a table that they share: by a container, which
// Session::reset() can empty, and by a name in it.
struct ResourceName {
  std::string container, name;
  auto operator<=>(const ResourceName&) const = default;
};

// The container of a process outside a cluster. The default container of a task is its job's name.
inline constexpr char kLocalContainer[] = "localhost";

// The name of what a variable or a handle stands for: its attr `container`, else the default one; its attr
// `shared_name`, else the operation's own name. InvalidArgumentError: the container's name has other characters than
// letters, digits, '.', '-', '/' (or begins with '-' or '/'), or the attr `shared_name` begins with '_'.
ResourceName resource_name(const Operation& handle, const std::string& default_container);

// Whether a reset of these containers empties that one; of none: of all.
bool is_among(const std::string& container, const std::vector<std::string>& containers);

}  // namespace longhaul
