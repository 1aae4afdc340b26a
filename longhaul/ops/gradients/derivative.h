#pragma once

#include <map>
#include <string>
#include <vector>

#include "longhaul/ops/gradients/backward.h"

namespace longhaul::ops {

// How gradients pass through a type of operation.
struct Derivative {
  // Adds the operations and sets the gradients of the needed inputs; false: this call is not supported, use the tape.
  // nullptr: no gradient passes, as the result does not depend smoothly on the inputs.
  bool (*function)(Backward&) = nullptr;
  // The arguments that may be tensors. A call with a tensor for another argument uses the tape.
  std::vector<std::string> edges;
};
using DerivativeTable = std::map<std::string, Derivative>;

// By family; derivatives() has all of them.
DerivativeTable arithmetic_derivatives();
DerivativeTable reduction_derivatives();
DerivativeTable array_derivatives();
DerivativeTable activation_derivatives();
DerivativeTable network_derivatives();
DerivativeTable loss_derivatives();
DerivativeTable constant_derivatives();

const DerivativeTable& derivatives();

}  // namespace longhaul::ops
