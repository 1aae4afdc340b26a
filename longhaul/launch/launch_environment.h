#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace longhaul {

// The environment variables that a launcher sets: the value of one, or nullopt if it is not set.
using LaunchEnvironment = std::function<std::optional<std::string>(const std::string& name)>;

// Those of this process.
LaunchEnvironment process_environment();

// Those of a map, for tests.
LaunchEnvironment environment_of(std::map<std::string, std::string> variables);

}  // namespace longhaul
