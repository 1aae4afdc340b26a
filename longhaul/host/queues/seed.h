#pragma once

#include <cstdint>
#include <string_view>

namespace longhaul {

// Seeds of generators of random numbers.

// Of an operation's name, the same on every machine (FNV-1a).
uint64_t seed_of_name(std::string_view name);

// Another one each time.
uint64_t fresh_seed();

}  // namespace longhaul
