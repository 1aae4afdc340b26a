#pragma once

#include <memory>
#include <string>

namespace longhaul {

// An advisory lock on a file that exists for it (FileSystem::try_lock()). Its destructor removes the file, then gives
// the lock back. One thread at a time.
class FileLock {
 public:
  enum class Outcome {
    kHeld,
    kTaken,        // by another, in this process or one that uses the same kernel, or the same server of files
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

// A lock of the kernel's, flock(2). It ends with its process, however that ends; a program that the process starts by
// exec does not have it, but a child of a bare fork() does. Makes the file if there is none, which does not stay where
// flock() is not supported. Does not wait. What open(2) throws: the directory is not there, or is not writable.
// `flock`: for tests, what is called in its place.
FileLock::Attempt try_flock(const std::string& path, int (*flock)(int fd, int operation) = nullptr);

// What a failed flock() with this errno says. Throws what is neither of the two.
FileLock::Outcome outcome_of_flock(int error_number, const std::string& path);

}  // namespace longhaul
