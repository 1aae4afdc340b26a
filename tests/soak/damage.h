#pragma once

#include <map>
#include <random>
#include <string>

#include "longhaul/io/file.h"

namespace longhaul::soak {

using Random = std::mt19937_64;

// The whole checkpoints in a directory, each read and its checksums compared: prefixes by step.
std::map<int64_t, std::string> whole_checkpoints(const std::string& directory);

// Does to the files of a directory what disks and people do, while nobody trains there. Of the checkpoints at least one
// stays whole. Returns the kind of damage; "" if there was nothing to damage. `is_checkpoint` is set if it was to one.
std::string damage_something(const std::string& directory, Random& random, bool& is_checkpoint);

}  // namespace longhaul::soak
