#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// The files of another file system that lie below some directories, the roots: for operations that somebody else asks
// for, such as a client of a server. Anything else is a PermissionDeniedError that names the path, where it leads to,
// the roots, and the option to add to. Without roots there are no files. Any thread may call.
//
// Refused are relative paths, and paths with a part "..". Symbolic links are followed before each operation, the last
// part of a path too, and one that leads out of the roots is refused, also if nothing is there yet. The operation then
// gets the path without links, so a link that is made later is not followed. What this cannot see is a process of this
// machine that replaces a directory by a link between the check and the operation, which takes microseconds: roots must
// not be writable for users whom the server's user would not trust. No operation here makes a symbolic link.
//
//   RootedFiles files(FileSystem::real(), {"/data", "/runs"});
//   files.open("/data/train.csv");
//   files.open("/etc/passwd");  // PermissionDeniedError
class RootedFiles : public FileSystem {
 public:
  // Roots are followed to where their links lead now, and need not exist. InvalidArgumentError: one is relative.
  // `inner` has the paths of this machine; it must outlive this object and every file that it has made.
  RootedFiles(FileSystem& inner, const std::vector<std::string>& roots);

  const std::vector<std::string>& roots() const { return roots_; }

  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists = IfExists::kTruncate) override;
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override;
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  bool exists(const std::string& path) override;
  bool is_directory(const std::string& path) override;
  double modified_at(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  void make_directories(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void link(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  uint64_t free_bytes(const std::string& path) override;
  FileLock::Attempt try_lock(const std::string& path) override;

 private:
  std::string followed(const char* operation, const std::string& path) const;
  std::string entry(const char* operation, const std::string& path) const;
  std::string to_create(const std::string& path, IfExists if_exists) const;
  void check_spelling(const char* operation, const std::string& path) const;
  [[noreturn]] void refuse(const char* operation, const std::string& path, const std::string& why) const;

  FileSystem& inner_;
  const std::vector<std::string> roots_;
};

}  // namespace longhaul
