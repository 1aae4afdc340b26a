#pragma once

#include <string>
#include <vector>

#include "longhaul/ops/aten_op.h"

namespace longhaul {

// What a tensor argument is fed in a test of a derivative: real numbers of both signs, numbers above 0, and the same
// without asking for a gradient, whole numbers below a limit, truth values.
enum class Values { kReal, kPositive, kFixed, kIndex, kBool };

struct TensorArgument {
  std::string name;
  std::vector<int64_t> shape;
  Values values = Values::kReal;
  int64_t limit = 2;  // of indices
};

// A call whose registered derivative is compared with libtorch's autograd.
struct GradientCase {
  std::string type;
  std::vector<TensorArgument> tensors;
  ops::NamedArgs constants = {};
  std::vector<int> outputs = {0};  // those that have a gradient
};

std::vector<GradientCase> gradient_cases();

}  // namespace longhaul
