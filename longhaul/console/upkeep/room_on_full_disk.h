#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/io/files/file.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul::console {

// Locks a directory in which something is to be deleted, also on a disk without room for the lock's record:
//
//   1. The directory is locked as ever. If there is room, that is all.
//   2. Else the flock alone is taken, which needs none. It keeps out all other chiefs that it reaches; and one of
//      another machine, whose flock may not reach here, would have left a record. If there are no flocks, or a record
//      of a process that may be alive, nothing is deleted: ResourceExhaustedError.
//   3. `delete_one` deletes something, and returns its name; nullopt: there is nothing to delete.
//   4. The flock is given back, and the directory is locked as in 1. ResourceExhaustedError: there is still no
//      room. A chief that has come in between is a DirectoryLockedError, as ever.
//
// Nobody has marked what was deleted in 3, as after a deletion by hand: of a crash in it data without an index
// remain.
std::unique_ptr<DirectoryLock> lock_full_directory(FileSystem& files, const std::string& directory,
                                                   const std::function<std::optional<std::string>()>& delete_one);

}  // namespace longhaul::console
