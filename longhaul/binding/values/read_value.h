#pragma once

#include "longhaul/binding/values/torch_values.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

class OverlappedCopies;

// As it is now; in a snapshot its bytes may come later. InternalError: libtorch cannot read it, as from a device that
// has failed.
Tensor read_value(const TorchValue& value, OverlappedCopies& copies);

}  // namespace longhaul
