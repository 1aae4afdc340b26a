#pragma once

#include <map>
#include <string>
#include <string_view>

#include "longhaul/io/files/file.h"

namespace longhaul::testing {

// Files whose contents are set once and then only read, for tests that read thousands of slightly different files.
// Every path with a file below it is a directory. Operations that change the disk throw UnimplementedError. Any thread
// may read; put() must not run at the same time.
class MemoryFileSystem : public FileSystem {
 public:
  void put(const std::string& path, std::string_view contents) { files_[path] = contents; }

  // An open file keeps the contents that it had when it was opened.
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  bool exists(const std::string& path) override { return files_.contains(path) || is_directory(path); }
  bool is_directory(const std::string& path) override;
  double modified_at(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;

  std::unique_ptr<WritableFile> create(const std::string& path, IfExists) override { refuse("create", path); }
  void make_directories(const std::string& path) override { refuse("make_directories", path); }
  void rename(const std::string& from, const std::string&) override { refuse("rename", from); }
  void link(const std::string& from, const std::string&) override { refuse("link", from); }
  void remove(const std::string& path) override { refuse("remove", path); }
  void sync_directory(const std::string& path) override { refuse("sync_directory", path); }
  uint64_t free_bytes(const std::string&) override { return 0; }

 private:
  [[noreturn]] static void refuse(const char* operation, const std::string& path);

  std::map<std::string, std::string> files_;
};

}  // namespace longhaul::testing
