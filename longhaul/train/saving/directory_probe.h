#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/session/task_snapshots.h"

namespace longhaul {

// Whether each of these tasks sees the directory that this process sees, and may write to it: a file
// longhaul.probe-TOKEN is made there, which every task must find with the same contents and next to which it must be
// able to make another, and is removed again. What a dead process has left of such files is removed, too, once it is
// older than kStaleProbe by the file system's own clock. The first time that a directory is not seen, the log says by
// whom.
//
// Nothing is written to a directory that another process owns: DirectoryLostError (io/lock/directory_lock.h). Otherwise
// throws what the session and the file system throw. A task's own error, such as a denied permission, means that it
// does not.
bool see_directory(TaskSnapshots& session, const std::vector<std::string>& tasks, FileSystem& files,
                   const std::string& directory);

inline constexpr double kStaleProbe = 600;  // seconds

// Whether each of these tasks sees the file at that path as this process does, for files that exist. Of kWrite: see
// TaskSnapshots::look().
bool see_file(TaskSnapshots& session, const std::vector<std::string>& tasks, FileSystem& files, const std::string& path,
              LookFor purpose = LookFor::kRead);

}  // namespace longhaul
