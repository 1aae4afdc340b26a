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

// fsync(2), where the file system supports it. Returns 0 or errno.
int sync_all(int fd);

// fdatasync(2); if the file system does not support it (EINVAL from some FUSE systems), fsync(2); if neither, nothing,
// with one warning per process. Returns 0 or errno.
int sync_data(int fd);

}  // namespace longhaul
