#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// For each input of an operation that runs on `device`, where it wants the value; nullopt: it takes it wherever it is.
// What a kernel or an operator of libtorch wants as numbers, such as a learning rate or a size, it wants on the host.
std::vector<std::optional<c10::Device>> wanted_inputs(const Operation& op, c10::Device device);

}  // namespace longhaul
