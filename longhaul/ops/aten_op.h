#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// The value of an ATen operator's argument: tensors of the graph, or a constant. An Output may stand for a Tensor, an
// int[] (a 1-D int64 tensor, as from ops::shape) or a number.
using Arg = std::variant<Output, std::vector<Output>, int64_t, double, bool, std::string, DType, std::vector<int64_t>>;
using NamedArgs = std::vector<std::pair<std::string, Arg>>;

// Adds an operation for libtorch's operator `schema`:
//   aten(scope, "aten::addmm", "layer", {{"self", b}, {"mat1", x}, {"mat2", w}});
// Arguments have the names in the schema; omitted ones have the schema's defaults. InvalidArgumentError: the operator
// cannot be called with these arguments; the message has the signature and the arguments. NotFoundError: this libtorch
// has no such operator.
Operation aten(const Scope& scope, const std::string& schema, std::string_view name, const NamedArgs& arguments);

}  // namespace longhaul::ops
