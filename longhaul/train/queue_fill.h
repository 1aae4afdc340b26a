#pragma once

#include <string>

#include "longhaul/ops/queue_ops.h"

namespace longhaul {

// A scalar summary of how full a queue is: how many elements beyond `above` it holds, of `range`.
void add_fill_summary(const Scope& scope, const QueueBase& queue, const std::string& name, int64_t above,
                      int64_t range);

}  // namespace longhaul
