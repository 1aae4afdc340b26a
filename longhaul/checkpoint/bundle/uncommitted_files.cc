#include "longhaul/checkpoint/bundle/uncommitted_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/checkpoint/files/given_up_files.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

void sync_and_close(WritableFile& file) {
  file.sync();
  file.close();
}

}  // namespace

UncommittedFiles::UncommittedFiles(FileSystem& files, const std::string& prefix)
    : files_(files),
      prefix_(prefix),
      under_way_(prefix_),
      directory_(directory_name(prefix_)),
      index_temporary_(temporary_path(index_path(prefix_))) {
  check_directory_owner(files_, prefix_);
  files_.make_directories(directory_);
  remove_stale_temporaries(files_, prefix_);
  for (const std::string& path : take_given_up_files(directory_)) remove_if_exists(files_, path);
}

UncommittedFiles::~UncommittedFiles() {
  if (index_in_place_) return;
  try {
    undo();
  } catch (...) {  // also of odd types, from a program's file system
    log_warning("{} was not saved, and cleaning up failed: {}", prefix_, message_of(std::current_exception()));
  }
}

WritableFile& UncommittedFiles::create_data(const std::string& path, uint64_t expected_bytes) {
  File& data = data_.emplace_back(File{path, temporary_path(path), nullptr});
  data.file =
      files_.create_large(data.temporary, {.if_exists = FileSystem::IfExists::kFail, .expected_bytes = expected_bytes});
  return *data.file;
}

void UncommittedFiles::expect_data(const std::string& path) {
  data_.push_back(File{path, temporary_path(path), nullptr});
}

void UncommittedFiles::adopt_data(size_t data, uint64_t bytes) {
  data_.at(data).adopted = bytes;
}

// What another process has written must be what this one is about to name.
void UncommittedFiles::check_adopted(const File& data) const {
  if (!data.adopted) throw FailedPreconditionError(data.temporary + " was to be written elsewhere, and was not");
  uint64_t found = 0;
  try {
    found = files_.open(data.temporary)->size();
  } catch (const NotFoundError& error) {
    throw UnavailableError(fmt::format("{} was written by another task, but is not here: {}", data.path, error.what()));
  }
  if (found == *data.adopted) return;
  throw UnavailableError(fmt::format("{} was written by another task with {} bytes, but has {} bytes here", data.path,
                                     *data.adopted, found));
}

void UncommittedFiles::write_other(const std::string& path, std::string_view contents) {
  File& other = others_.emplace_back(File{path, temporary_path(path), nullptr});
  other.file = files_.create(other.temporary, FileSystem::IfExists::kFail);
  other.file->append(contents);
}

void UncommittedFiles::finish_data(const std::function<void(WritableFile& index)>& write_index) {
  const auto index = files_.create(index_temporary_, FileSystem::IfExists::kFail);
  write_index(*index);
  for (const File& other : others_) sync_and_close(*other.file);
  sync_and_close(*index);
  files_.sync_directory(directory_);
  for (const File& data : data_) data.file ? sync_and_close(*data.file) : check_adopted(data);
  check_directory_owner(files_, prefix_);
  prefix_touched_ = true;
  if (files_.exists(index_path(prefix_))) {
    set_aside(files_, prefix_);
  } else {
    keep_lost_data();
  }
  give_names();
}

// Data of this name that has no index may be that of a checkpoint whose index was lost. What a save has left that was
// cut off is gone by now, where a chief has begun here.
void UncommittedFiles::keep_lost_data() {
  if (data_files_of(files_, prefix_).empty() || files_.exists(index_path(aside_prefix(prefix_)))) return;
  log_warning("{} has data files without an index; this save does not replace them but renames them to {}", prefix_,
              mark_corrupt(files_, prefix_));
}

void UncommittedFiles::give_names() {
  for (const File& data : data_) rename_as_owner(data.temporary, data.path);
  for (const File& other : others_) rename_as_owner(other.temporary, other.path);
}

void UncommittedFiles::commit() {
  files_.sync_directory(directory_);
  rename_as_owner(index_temporary_, index_path(prefix_));
  index_in_place_ = true;
  files_.sync_directory(directory_);
}

void UncommittedFiles::rename_as_owner(const std::string& from, const std::string& to) {
  check_directory_owner(files_, to);
  files_.rename(from, to);
}

// The checkpoint is committed: what fails here costs room on the disk, and no more.
void UncommittedFiles::remove_leftovers() {
  try {
    check_directory_owner(files_, prefix_);
    drop_aside(files_, prefix_);
    for (const std::string& path : data_files_of(files_, prefix_)) {
      const bool ours = std::any_of(data_.begin(), data_.end(), [&](const File& data) { return data.path == path; });
      if (!ours) files_.remove(path);
    }
  } catch (...) {
    log_warning("{} was saved, but files of the checkpoint that it replaces could not be removed: {}", prefix_,
                message_of(std::current_exception()));
  }
}

// Without the index.
void UncommittedFiles::remove_temporary_files() {
  for (File& data : data_) {
    const bool is_elsewhere = data.file == nullptr && !data.adopted;
    data.file.reset();
    remove_if_exists(files_, data.temporary);
    if (is_elsewhere) note_given_up_file(data.temporary);
  }
  for (File& other : others_) {
    other.file.reset();
    remove_if_exists(files_, other.temporary);
  }
}

// Whether the checkpoint that was set aside has the file of that path.
bool UncommittedFiles::is_aside(const std::string& path) const {
  const std::string aside = aside_prefix(prefix_);
  return files_.exists(path.starts_with(prefix_) ? aside + path.substr(prefix_.size()) : index_path(aside));
}

void UncommittedFiles::undo() {
  remove_temporary_files();
  if (prefix_touched_) {
    check_directory_owner(files_, prefix_);
    take_names_back();
    files_.sync_directory(directory_);
  }
  remove_if_exists(files_, index_temporary_);
}

void UncommittedFiles::take_names_back() {
  if (files_.exists(index_path(prefix_))) return drop_aside(files_, prefix_);
  for (const File& data : data_) {
    if (!is_aside(data.path)) remove_if_exists(files_, data.path);
  }
  for (const File& other : others_) {
    if (!is_aside(other.path)) remove_if_exists(files_, other.path);
  }
  if (files_.exists(index_path(aside_prefix(prefix_)))) put_back(files_, prefix_);
}

}  // namespace longhaul
