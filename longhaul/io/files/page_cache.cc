#include "longhaul/io/files/page_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include "longhaul/base/above_stdio.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/files/posix_call.h"

namespace longhaul {

void forget_cached(const std::string& path) {
  const AboveStdio above;
  const int fd = retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) return;
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

}  // namespace longhaul
