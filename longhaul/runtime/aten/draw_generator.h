#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

namespace longhaul {

// Makes `generator` one of the CPU's that begins a draw: what it gives follows from `seed` alone. An undefined one is
// made. Not while it is in use.
void seed_for_draw(uint64_t seed, at::Generator& generator);

}  // namespace longhaul
