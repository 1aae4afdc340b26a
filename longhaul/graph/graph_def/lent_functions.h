#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/graph/operation.h"

namespace longhaul {

// A run on several tasks is sent to them in parts, as messages (placement/part_graph.h), to the program's own task,
// too. A function of the program (ops::host_function()) stays in the program; its part has a ticket for it, which only
// this process can change back into the function.
//
// Any thread may call. The table does not keep functions alive.
std::string lend_function(const std::shared_ptr<HostFunction>& function);

// nullptr: the ticket is of another process, or of none, or its function is gone.
std::shared_ptr<HostFunction> find_lent_function(std::string_view ticket);

}  // namespace longhaul
