#include "longhaul/console/upkeep/room_on_full_disk.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul::console {
namespace {

std::unique_ptr<DirectoryLock> lock(FileSystem& files, const std::string& directory) {
  return std::make_unique<DirectoryLock>(directory, DirectoryLockOptions{.files = &files});
}

// Why the flock alone does not keep all other chiefs out; empty: it does.
std::string what_flock_lacks(FileSystem& files, const std::string& directory, const FileLock::Attempt& flock) {
  if (flock.outcome == FileLock::Outcome::kUnsupported) return "the file system has no locks";
  if (flock.outcome == FileLock::Outcome::kTaken) return "another process has just locked the directory";
  try {
    const auto owner = read_owner(files, strip_file_scheme(directory));
    if (!owner || state_of(owner->process) == ProcessState::kGone) return "";
    const bool is_of_this_machine = !owner->process.boot_id.empty() && owner->process.boot_id == this_process().boot_id;
    if (is_of_this_machine && owner->has_flock) return "";  // in another container, and the flock was free
    return fmt::format("a chief may still train there ({})", describe(*owner));
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::unique_ptr<DirectoryLock> lock_full_directory(FileSystem& files, const std::string& directory,
                                                   const std::function<std::optional<std::string>()>& delete_one) {
  std::string full;
  try {
    return lock(files, directory);
  } catch (const ResourceExhaustedError& error) {
    full = error.what();
  }
  std::optional<std::string> deleted;
  {
    const FileLock::Attempt flock = files.try_lock(join_path(strip_file_scheme(directory), "chief.lock"));
    const std::string lacks = what_flock_lacks(files, directory, flock);
    if (!lacks.empty()) {
      throw ResourceExhaustedError(
          fmt::format("{}; without room for the record of a lock, nothing was deleted, because {}: make room elsewhere "
                      "on the disk, 64 kB at least, and run it again",
                      full, lacks));
    }
    deleted = delete_one();
  }
  try {
    return lock(files, directory);
  } catch (const ResourceExhaustedError& error) {
    throw ResourceExhaustedError(
        deleted
            ? fmt::format("{}; {} was deleted, and the disk is still full: run it again; if that frees nothing, "
                          "snapshots may keep what is deleted, or somebody fills the disk: make room elsewhere on it",
                          error.what(), *deleted)
            : fmt::format("{}; there is nothing to delete here: make room elsewhere on the disk", error.what()));
  }
}

}  // namespace longhaul::console
