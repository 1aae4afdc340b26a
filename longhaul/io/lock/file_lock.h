#pragma once

#include <memory>
#include <string>

namespace longhaul {

// An advisory lock on a file that exists only for the lock (FileSystem::try_lock()). The destructor removes the file,
// then releases the lock. One thread at a time may call.
class FileLock {
 public:
  enum class Outcome {
    kHeld,
    kTaken,        // held by another lock, in this process or another one on the same kernel or file server
    kUnsupported,  // the file system has no locks
  };
  struct Attempt;

  FileLock() = default;
  virtual ~FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
};

struct FileLock::Attempt {
  Outcome outcome = Outcome::kUnsupported;
  std::unique_ptr<FileLock> lock;  // null unless taken
};

// Takes a kernel lock, flock(2). The lock ends with its process, however that ends. A program started by exec does not
// inherit it, but a child of a bare fork() does. Creates the file if it does not exist, and removes it again if flock()
// is not supported. Does not wait. Throws open(2)'s error if the directory is missing or not writable. `flock` is
// called instead of flock(2), for tests.
FileLock::Attempt try_flock(const std::string& path, int (*flock)(int fd, int operation) = nullptr);

// The outcome of a flock() that failed with this errno: kTaken or kUnsupported. Throws other errors.
FileLock::Outcome outcome_of_flock(int error_number, const std::string& path);

}  // namespace longhaul
