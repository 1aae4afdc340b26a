#pragma once

#include <cerrno>

namespace longhaul {

// Repeats a system call that a signal interrupted.
template <typename Call>
auto retried(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace longhaul
