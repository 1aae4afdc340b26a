#pragma once

#include "longhaul/session/session.h"

namespace longhaul {

// The tensor that a hook was told to look at. NotFoundError: the graph has none of that name. InvalidArgumentError: it
// is of another graph, or an operation, which has no value; the message names the hook.
Output hook_tensor(const Graph& graph, const Fetch& fetch, const char* hook);

}  // namespace longhaul
