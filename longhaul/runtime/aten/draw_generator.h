#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace longhaul {

// Prepares `generator`, of the device, for a draw: its numbers depend only on `seed`, and on the kind of device. An
// undefined one is created; UnimplementedError: libtorch knows none of this kind. Must not be called while it is in
// use.
void seed_for_draw(uint64_t seed, c10::Device device, at::Generator& generator);

}  // namespace longhaul
