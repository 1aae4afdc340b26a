#include "longhaul/io/lock/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr int kMostRenewals = 100;  // of the file, between opening and locking it

struct LockFile {
  int fd;
  bool is_new;  // made by this call
};

// Another one may make it, or remove it, at any moment.
LockFile open_lock_file(const std::string& path) {
  int error = 0;
  for (int i = 0; i < 2 * kMostRenewals; ++i) {
    const bool is_new = i % 2 == 0;
    const AboveStdio above;
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0), 0666);
    if (fd >= 0) return {fd, is_new};
    error = errno;
    if (error != EINTR && error != (is_new ? EEXIST : ENOENT)) break;
  }
  throw_errno(error, "open " + path);
}

// 0, or errno.
int flock_now(int fd, int (*flock)(int, int)) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
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

class Flock : public FileLock {
 public:
  Flock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~Flock() override {
    if (is_named(fd_, path_)) ::unlink(path_.c_str());
    ::close(fd_);
  }

 private:
  const std::string path_;
  const int fd_;
};

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

FileLock::Attempt try_flock(const std::string& path, int (*flock)(int fd, int operation)) {
  for (int i = 0; i < kMostRenewals; ++i) {
    const auto [fd, is_new] = open_lock_file(path);
    if (const int error = flock_now(fd, flock != nullptr ? flock : &::flock)) {
      ::close(fd);
      const FileLock::Outcome outcome = outcome_of_flock(error, path);
      if (is_new && outcome == FileLock::Outcome::kUnsupported) ::unlink(path.c_str());
      return {outcome, nullptr};
    }
    if (is_named(fd, path)) return {FileLock::Outcome::kHeld, std::make_unique<Flock>(path, fd)};
    ::close(fd);
  }
  return {FileLock::Outcome::kTaken, nullptr};
}

}  // namespace longhaul
