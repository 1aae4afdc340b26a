#pragma once

#include <string>

#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Logs what a checkpoint will take on the disk and in memory, and warns when the disk of `directory` has no room for
// two: the old one is deleted only after the new one is whole; and when the process may not have the memory of the
// variables twice (memory_limit): as much is written while a snapshot is held. Throws nothing for a disk that does not
// tell. `root`: as memory_limit() has it.
void report_checkpoint_costs(const Saver& saver, const std::string& directory, const std::string& root = "/");

// NotFoundError, PermissionDeniedError, ...: files cannot be made in the directory, which is created.
void check_writable(FileSystem& files, const std::string& directory);

}  // namespace longhaul
