#pragma once

#include <string>
#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// What the elements of a queue are: tuples of tensors.
struct QueueSignature {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;  // one for each component; empty: not declared
};

// Of a handle (`FIFOQueueV2`, ...). A priority queue has the priority, a scalar int64, as its first component.
QueueSignature queue_signature(const Operation& handle);

// The types of operation that are handles on queues.
const std::vector<std::string>& queue_types();

}  // namespace longhaul
