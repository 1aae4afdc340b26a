#pragma once

#include <memory>
#include <string>

namespace longhaul {

// An advisory lock on a file that exists only for it (FileSystem::try_lock()). Its destructor removes the file, then
// releases the lock. One thread at a time.
class FileLock {
 public:
  enum class Outcome {
    kHeld,
    kTaken,        // by another lock, in this process or one on the same kernel or file server
    kUnsupported,  // by the file system
  };
  struct Attempt;

  FileLock() = default;
  virtual ~FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
};

struct FileLock::Attempt {
  Outcome outcome = Outcome::kUnsupported;
  std::unique_ptr<FileLock> lock;  // if it is held
};

// A kernel lock, flock(2). It ends with its process, however that ends; a program started by exec does not inherit it,
// but a child of a bare fork() does. Creates the file if there is none, and removes it again where flock() is not
// supported. Does not wait. Throws open(2)'s error if the directory is missing or not writable. `flock`: called in
// place of flock(2), for tests.
FileLock::Attempt try_flock(const std::string& path, int (*flock)(int fd, int operation) = nullptr);

// The outcome of a flock() that failed with this errno: kTaken or kUnsupported. Throws other errors.
FileLock::Outcome outcome_of_flock(int error_number, const std::string& path);

}  // namespace longhaul
