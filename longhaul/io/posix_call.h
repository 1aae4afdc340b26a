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

// fsync(2), where the file system has it. 0, or errno.
int sync_all(int fd);

// fdatasync(2); where the file system has none (EINVAL of some FUSE), fsync(2); where it has neither, nothing, with one
// warning in the process. 0, or errno.
int sync_data(int fd);

}  // namespace longhaul
