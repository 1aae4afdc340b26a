#include "longhaul/base/above_stdio.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

constexpr int kFirst = STDERR_FILENO + 1;

struct Taken {
  Mutex mutex;
  int users GUARDED_BY(mutex) = 0;
  std::array<bool, kFirst> by_us GUARDED_BY(mutex){};
};

Taken& taken() {
  static auto* const taken = new Taken;
  return *taken;
}

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

bool are_all_open() {
  return is_open(STDIN_FILENO) && is_open(STDOUT_FILENO) && is_open(STDERR_FILENO);
}

void take(std::array<bool, kFirst>& by_us) {
  while (true) {
    const int fd = ::open("/", O_PATH | O_CLOEXEC);
    if (fd >= kFirst) ::close(fd);
    if (fd < 0 || fd >= kFirst) return;
    by_us[static_cast<size_t>(fd)] = true;
  }
}

// The program may have put something else there meanwhile: that is no O_PATH.
void give_back(std::array<bool, kFirst>& by_us) {
  for (int fd = 0; fd < kFirst; ++fd) {
    if (!by_us[static_cast<size_t>(fd)]) continue;
    by_us[static_cast<size_t>(fd)] = false;
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_PATH) != 0) ::close(fd);
  }
}

}  // namespace

AboveStdio::AboveStdio() {
  Taken& all = taken();
  MutexLock lock(all.mutex);
  counts_ = all.users > 0 || !are_all_open();
  if (counts_ && all.users++ == 0) take(all.by_us);
}

AboveStdio::~AboveStdio() {
  if (!counts_) return;
  Taken& all = taken();
  MutexLock lock(all.mutex);
  if (--all.users == 0) give_back(all.by_us);
}

}  // namespace longhaul
