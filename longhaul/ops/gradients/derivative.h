#pragma once

#include <map>
#include <string>
#include <vector>

#include "longhaul/ops/gradients/backward.h"

namespace longhaul::ops {

// The derivative of one type of operation.
struct Derivative {
  // Adds the operations that compute the gradients of the needed inputs. Returns false if it does not support this
  // call, which then uses libtorch's autograd (TapeGradient). A null pointer: no gradient passes, as the result does
  // not depend smoothly on the inputs.
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
