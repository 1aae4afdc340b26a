#pragma once

#include <cstdint>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/session/session.h"

namespace longhaul {

// Steps per second. If no time has passed: infinity, or 0 if no steps were made either.
double steps_per_second(int64_t steps, Seconds elapsed);

// The readable name of a step counter: "global_step" for "global_step/read".
std::string step_name(const Output& global_step);

// The tag of a step counter's rate: "global_step/sec".
std::string rate_tag(const Output& global_step);

}  // namespace longhaul
