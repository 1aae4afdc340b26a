#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

namespace longhaul {

// Prepares `generator`, of the CPU, for a draw: its numbers depend only on `seed`. An undefined one is created. Must
// not be called while it is in use.
void seed_for_draw(uint64_t seed, at::Generator& generator);

}  // namespace longhaul
