#include "longhaul/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

int open_lock_file(const std::string& path) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_errno(errno, "open " + path);
  return fd;
}

// 0, or errno.
int flock_now(int fd) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Whether the file is still the one of that name: who held it before may have removed it since it was opened.
bool is_named(int fd, const std::string& path) {
  struct stat held, named;
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

FileLock::Outcome outcome_of_flock(int error_number, const std::string& path) {
  switch (error_number) {
    case EWOULDBLOCK: return FileLock::Outcome::kTaken;
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP:
    case EINVAL: return FileLock::Outcome::kUnsupported;
    default: throw_errno(error_number, "flock " + path);
  }
}

FileLock::Attempt FileLock::try_lock(const std::string& path) {
  constexpr int kMostRenewals = 100;  // of the file, between opening and locking it
  for (int i = 0; i < kMostRenewals; ++i) {
    const int fd = open_lock_file(path);
    if (const int error = flock_now(fd)) {
      ::close(fd);
      return {outcome_of_flock(error, path), nullptr};
    }
    if (is_named(fd, path)) return {Outcome::kHeld, std::unique_ptr<FileLock>(new FileLock(path, fd))};
    ::close(fd);
  }
  return {Outcome::kTaken, nullptr};
}

FileLock::~FileLock() {
  if (is_named(fd_, path_)) ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace longhaul
