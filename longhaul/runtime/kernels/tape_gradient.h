#pragma once

#include "longhaul/graph/operation.h"
#include "longhaul/runtime/aten/aten_call.h"

namespace longhaul {

// The operator that a TapeGradient runs again on a tape. Its inputs are the operation's first ones, those of the
// forward operation; the gradients of its outputs follow. InvalidArgumentError: this libtorch does not have it.
AtenCall forward_call_of(const Operation& tape_gradient);

}  // namespace longhaul
