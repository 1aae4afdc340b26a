#pragma once

#include <string>
#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// The form of a queue's elements: tuples of tensors.
struct QueueSignature {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;  // one for each component; empty: not declared
};

// The signature of a handle's queue (`FIFOQueueV2`, ...). The first component of a priority queue is the priority, a
// scalar int64.
QueueSignature queue_signature(const Operation& handle);

// The types of operations that are handles to queues.
const std::vector<std::string>& queue_types();

}  // namespace longhaul
