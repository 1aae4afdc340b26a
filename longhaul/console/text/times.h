#pragma once

#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul::console {

// "2026-11-28 10:17:54 UTC", of seconds since 1970; "-" for what is no time of the years 1970 to 9999.
std::string utc_text(double time);

// "0.25 s", "59 s", "3 min 5 s", "3 h 12 min", "2 d 3 h".
std::string duration_text(Seconds duration);

// "3 min 5 s ago"; of a time in the future, "12 s in the future, by this machine's clock".
std::string age_text(double time, double now);

}  // namespace longhaul::console
