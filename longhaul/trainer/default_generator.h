#pragma once

#include <ATen/core/Tensor.h>

namespace longhaul {

// The state of libtorch's default generator on the CPU. Any thread.
at::Tensor default_generator_state();
void set_default_generator_state(const at::Tensor& state);

}  // namespace longhaul
