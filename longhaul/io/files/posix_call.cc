#include "longhaul/io/files/posix_call.h"

#include <unistd.h>

#include <atomic>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

bool is_unsupported(int error) {
  return error == EINVAL || error == ENOTSUP || error == ENOSYS;
}

void warn_once_of_no_sync() {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  log_warning("a file system supports neither fdatasync() nor fsync(): a power cut may lose data written there");
}

}  // namespace

int sync_all(int fd) {
  const int error = retried([&] { return ::fsync(fd); }) == 0 ? 0 : errno;
  return is_unsupported(error) ? 0 : error;
}

int sync_data(int fd) {
  int error = retried([&] { return ::fdatasync(fd); }) == 0 ? 0 : errno;
  if (is_unsupported(error)) error = retried([&] { return ::fsync(fd); }) == 0 ? 0 : errno;
  if (!is_unsupported(error)) return error;
  warn_once_of_no_sync();
  return 0;
}

}  // namespace longhaul
