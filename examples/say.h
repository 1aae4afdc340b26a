#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace longhaul::examples {

// Prints. Where nobody reads it any more, as after `| head -1` or when the terminal is closed, that is no error: a
// training that has ended well is not to end badly for it.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace longhaul::examples
