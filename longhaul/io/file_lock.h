#pragma once

#include <memory>
#include <string>

namespace longhaul {

// An advisory lock of the kernel's, flock(2), on a file that exists for it. It ends with its process, however that
// ends; a program that the process starts by exec does not have it, but a child of a bare fork() does. One thread at a
// time.
class FileLock {
 public:
  enum class Outcome {
    kHeld,
    kTaken,        // by another, in this process or one that uses the same kernel, or the same server of files
    kUnsupported,  // by the file system
  };
  struct Attempt;

  // Makes the file if there is none. Does not wait. What open(2) throws: the directory is not there, or is not
  // writable.
  static Attempt try_lock(const std::string& path);

  // Removes the file, then gives the lock back.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
};

struct FileLock::Attempt {
  Outcome outcome;
  std::unique_ptr<FileLock> lock;  // if it is held
};

// What a failed flock() with this errno says. Throws what is neither of the two.
FileLock::Outcome outcome_of_flock(int error_number, const std::string& path);

}  // namespace longhaul
