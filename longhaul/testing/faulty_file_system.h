#pragma once

#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"

namespace longhaul::testing {

// The files of another file system, with faults. Records, in order, every operation that changes the disk: "create
// a/b", "append b 12", "flush b", "sync b", "close b", "rename b c", "link b c", "remove b", "make_directories a",
// "sync_directory a", "try_lock b" (files by base name, directories by path). To try every failure of a protocol, run
// it once to learn operations().size(), then once for each n with fail_operation(n). Any thread.
class FaultyFileSystem : public FileSystem {
 public:
  enum class Fault {
    kOnce,     // only that operation fails
    kForGood,  // it and all later ones: the machine stopped there, and a restart finds the disk in that state
  };

  explicit FaultyFileSystem(FileSystem& inner = FileSystem::real()) : inner_(inner) {}

  // The n-th operation from now (0 is the next) throws UnavailableError and has no effect; a failing append writes half
  // of its bytes.
  void fail_operation(int n, Fault fault = Fault::kOnce);

  // Once `bytes` more have been appended, in all files together, the disk is full: appends write what fits and throw
  // ResourceExhaustedError, until heal().
  void fail_writes_after(uint64_t bytes);

  // Ends all faults.
  void heal();

  std::vector<std::string> operations() const;

  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists = IfExists::kTruncate) override;
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override;
  std::unique_ptr<ReadableFile> open(const std::string& path) override { return inner_.open(path); }
  bool exists(const std::string& path) override { return inner_.exists(path); }
  bool is_directory(const std::string& path) override { return inner_.is_directory(path); }
  double modified_at(const std::string& path) override { return inner_.modified_at(path); }
  std::vector<std::string> list(const std::string& directory) override { return inner_.list(directory); }
  void make_directories(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void link(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  uint64_t free_bytes(const std::string& path) override { return inner_.free_bytes(path); }
  FileLock::Attempt try_lock(const std::string& path) override;

 private:
  class File;

  // Records the operation and returns whether it must fail.
  bool must_fail(const std::string& operation);
  void check(const std::string& operation);
  uint64_t room_for(uint64_t bytes);

  FileSystem& inner_;
  mutable Mutex mutex_;
  std::vector<std::string> operations_ GUARDED_BY(mutex_);
  int until_fault_ GUARDED_BY(mutex_) = -1;
  Fault fault_ GUARDED_BY(mutex_) = Fault::kOnce;
  uint64_t room_ GUARDED_BY(mutex_) = UINT64_MAX;
};

}  // namespace longhaul::testing
