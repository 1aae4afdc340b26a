#pragma once

#include <cstdint>
#include <string_view>

namespace longhaul {

// Seeds for random number generators.

// From an operation's name, the same on every machine (FNV-1a).
uint64_t seed_of_name(std::string_view name);

// A different one each time.
uint64_t fresh_seed();

}  // namespace longhaul
