#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/files/writes_under_way.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// The files of a checkpoint that is being written, from their temporary names to the final ones: the steps on disk of
// the protocol above BundleWriter. If destroyed before the commit, it removes the written files, puts back those that
// were set aside, and logs failures. One thread at a time may call.
class UncommittedFiles {
 public:
  // Makes the prefix's directory, and removes temporary files of a dead process, and those that others have written
  // for this process after it had given them up.
  UncommittedFiles(FileSystem& files, const std::string& prefix);
  ~UncommittedFiles();
  UncommittedFiles(const UncommittedFiles&) = delete;
  UncommittedFiles& operator=(const UncommittedFiles&) = delete;

  const std::string& prefix() const { return prefix_; }

  // The data file that will have that path. It lives as long as this object.
  WritableFile& create_data(const std::string& path, uint64_t expected_bytes);
  // The same, but another process writes it: under temporary_data(), and adopt_data() when it is durable.
  void expect_data(const std::string& path);
  void adopt_data(size_t data, uint64_t bytes);
  const std::string& temporary_data(size_t data) const { return data_.at(data).temporary; }
  size_t num_data() const { return data_.size(); }
  void write_other(const std::string& path, std::string_view contents);

  // Steps 2 to 5: everything is durable, and all but the index has its name.
  void finish_data(const std::function<void(WritableFile& index)>& write_index);
  void commit();            // 6 and 7
  void remove_leftovers();  // 8; logs what fails

 private:
  struct File {
    std::string path, temporary;
    std::unique_ptr<WritableFile> file;  // null: written elsewhere
    std::optional<uint64_t> adopted{};   // then its size
  };

  void check_adopted(const File& data) const;
  void keep_lost_data();
  void give_names();
  void rename_as_owner(const std::string& from, const std::string& to);
  void remove_temporary_files();
  bool is_aside(const std::string& path) const;
  void undo();
  void take_names_back();

  FileSystem& files_;
  const std::string prefix_;
  const WriteUnderWay under_way_;
  const std::string directory_;
  const std::string index_temporary_;
  std::vector<File> data_;
  std::vector<File> others_;
  bool prefix_touched_ = false;  // step 4 has begun
  bool index_in_place_ = false;
};

}  // namespace longhaul
