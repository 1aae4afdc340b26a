#pragma once

#include <string>

#include "longhaul/session/session.h"

namespace longhaul {

// Identifies what a request asks for, not the values fed: two requests of one graph with the same key need one
// compilation. Valid in this process, as long as the graph lives.
std::string key_of(const Session::Request& request);

}  // namespace longhaul
