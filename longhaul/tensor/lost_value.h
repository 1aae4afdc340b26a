#pragma once

#include <string>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A result that is gone, because the session that had it was lost. It is an undefined tensor: `defined()` is false,
// and whoever reads it gets an AbortedError with this reason, as for a lost session. A program that is started
// again after that continues where it was.
Tensor lost_value(std::string why);
bool is_lost_value(const Tensor& tensor);

}  // namespace longhaul
