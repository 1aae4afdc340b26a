#pragma once

#include "longhaul/graph/op_catalog.h"

namespace longhaul {

// libtorch's operators as operation types, checked against their schemas. Shapes are inferred by running the operator
// on meta tensors or, if libtorch has no meta kernel for it, on small dummy tensors; an unknown dimension is tried with
// two sizes, and sizes that differ in the results are unknown, too.
const OpCatalog& aten_op_catalog();

}  // namespace longhaul
