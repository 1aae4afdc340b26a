#pragma once

#include "longhaul/graph/operation.h"

namespace longhaul {

// Whether the operation has random numbers of its own in each session (host/queues/random_stream.h): libtorch's
// operators that take a generator do, and RandomShuffle.
bool has_random_stream(const Operation& op);

// The operation whose place another one shares by its attr _class ("loc:@NAME"). InvalidArgumentError: it has none.
// NotFoundError: there is no such operation.
Operation colocated_operation(const Operation& op);

}  // namespace longhaul
