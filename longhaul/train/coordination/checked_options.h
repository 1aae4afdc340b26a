#pragma once

#include <string_view>

#include "longhaul/base/clock.h"

namespace longhaul {

// For options in which 0 switches something off, or means "no limit". InvalidArgumentError: the number is negative or
// NaN, which would silently do the same.
void check_not_negative(std::string_view option, double value);
inline void check_not_negative(std::string_view option, Seconds value) {
  check_not_negative(option, value.count());
}

// For names of files that stand in a directory of another option. InvalidArgumentError: it is empty, or has a '/'.
void check_file_name(std::string_view option, std::string_view name);

}  // namespace longhaul
