#include "longhaul/ops/gradients/derivative.h"

namespace longhaul::ops {

// Operators of floating-point results that do not depend on the values of their inputs, or only in steps.
DerivativeTable constant_derivatives() {
  DerivativeTable table;
  for (const char* type : {"aten::detach", "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::rand_like",
                           "aten::randn_like", "aten::bernoulli", "aten::bernoulli.p", "aten::floor", "aten::ceil",
                           "aten::round", "aten::trunc", "aten::sign", "aten::new_zeros", "aten::new_ones"})
    table[type] = {};
  return table;
}

const DerivativeTable& derivatives() {
  static const auto* all = [] {
    auto* table = new DerivativeTable;
    for (DerivativeTable family :
         {arithmetic_derivatives(), reduction_derivatives(), array_derivatives(), activation_derivatives(),
          network_derivatives(), loss_derivatives(), constant_derivatives()})
      table->merge(family);
    return table;
  }();
  return *all;
}

}  // namespace longhaul::ops
