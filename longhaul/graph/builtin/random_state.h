#pragma once

#include "longhaul/graph/operation.h"

namespace longhaul {

// Whether the operation has its own random stream in each session (host/queues/random_stream.h): libtorch's operators
// that take a generator do, and RandomShuffle.
bool has_random_stream(const Operation& op);

// The operation with which another is colocated by its attr _class ("loc:@NAME"). InvalidArgumentError: it has no such
// attr. NotFoundError: there is no such operation.
Operation colocated_operation(const Operation& op);

}  // namespace longhaul
