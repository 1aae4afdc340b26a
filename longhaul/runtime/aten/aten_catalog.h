#pragma once

#include "longhaul/graph/op_catalog.h"

namespace longhaul {

// libtorch's operators as operation types, checked against their schemas. Shapes are inferred by running the operator
// on meta tensors, or, where libtorch has no meta kernel for it, on small tensors without meaning; a dimension that is
// unknown is tried with two sizes, and what differs in the result is unknown too.
const OpCatalog& aten_op_catalog();

}  // namespace longhaul
