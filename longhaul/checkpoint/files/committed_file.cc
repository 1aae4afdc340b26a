#include "longhaul/checkpoint/files/committed_file.h"

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

void remove_uncommitted(FileSystem& files, const std::string& path, const std::string& temporary) {
  try {
    remove_if_exists(files, temporary);
  } catch (const Error& error) {
    log_warning("{} was not written, and its temporary file could not be removed: {}", path, error.what());
  }
}

}  // namespace

void write_committed_file(FileSystem& files, const std::string& path, uint64_t expected_bytes,
                          const std::function<void(WritableFile&)>& write) {
  check_directory_owner(files, path);
  files.make_directories(directory_name(path));
  const std::string temporary = temporary_path(path);
  try {
    const auto file =
        files.create_large(temporary, {.if_exists = FileSystem::IfExists::kFail, .expected_bytes = expected_bytes});
    write(*file);
    file->sync();
    file->close();
    check_directory_owner(files, path);
    files.rename(temporary, path);
  } catch (...) {
    remove_uncommitted(files, path, temporary);
    throw;
  }
  files.sync_directory(directory_name(path));
}

}  // namespace longhaul
