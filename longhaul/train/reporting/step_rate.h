#pragma once

#include <cstdint>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/session/session.h"

namespace longhaul {

// Steps in a second. Where no time has passed it is infinity, or 0 if no steps were made either.
double steps_per_second(int64_t steps, Seconds elapsed);

// The name of a step counter for people: of "global_step/read" it is "global_step".
std::string step_name(const Output& global_step);

// The tag of a step counter's speed: "global_step/sec".
std::string rate_tag(const Output& global_step);

}  // namespace longhaul
