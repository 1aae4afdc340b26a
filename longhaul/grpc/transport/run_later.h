#pragma once

#include <functional>

#include "longhaul/base/mutex.h"

namespace longhaul {

// Runs it once after that time, on a thread of gRPC's, which it must not keep waiting. Whoever is used in it and may be
// gone by then stands behind a CallbackDoor, or is counted (CallsInGrpc).
void run_later(Seconds time, std::function<void()> body);

}  // namespace longhaul
