#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

struct BucketFilesOptions {
  bool renames = true;  // false: a rename copies the file and removes the old one, and there are no hard links
  bool syncs = true;    // false: a sync does nothing; closed files count as safe
};

// The files of a file system that may lack renames or syncs, like a mounted object-store bucket. Supported operations
// are passed on. If a rename or a sync is refused although its option is on, the error says which option to switch off.
// A rename that copies is not atomic: a crash may leave both names, or a partial new file. Any thread may call.
class BucketFiles : public FileSystem {
 public:
  // `inner` must outlive this object and every file that it has made.
  BucketFiles(FileSystem& inner, const BucketFilesOptions& options) : inner_(inner), options_(options) {}

  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists = IfExists::kTruncate) override;
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override;
  void rename(const std::string& from, const std::string& to) override;
  void link(const std::string& from, const std::string& to) override;
  void sync_directory(const std::string& path) override;

  std::unique_ptr<ReadableFile> open(const std::string& path) override { return inner_.open(path); }
  bool exists(const std::string& path) override { return inner_.exists(path); }
  bool is_directory(const std::string& path) override { return inner_.is_directory(path); }
  double modified_at(const std::string& path) override { return inner_.modified_at(path); }
  std::vector<std::string> list(const std::string& directory) override { return inner_.list(directory); }
  void make_directories(const std::string& path) override { inner_.make_directories(path); }
  void remove(const std::string& path) override { inner_.remove(path); }
  uint64_t free_bytes(const std::string& path) override { return inner_.free_bytes(path); }
  FileLock::Attempt try_lock(const std::string& path) override { return inner_.try_lock(path); }

 private:
  FileSystem& inner_;
  const BucketFilesOptions options_;
};

}  // namespace longhaul
