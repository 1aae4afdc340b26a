#pragma once

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"

namespace longhaul {

// Waits until then, or until the work is cancelled.
void pause(Clock& clock, Seconds until, Cancellation* cancellation);

}  // namespace longhaul
