#pragma once

#include <string>

#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Logs how much disk and memory a checkpoint will take. Warns if the disk of `directory` has no room for two, as the
// old one is deleted only after the new one is complete; and if the process may not use twice the variables' memory
// (memory_limit), as much is needed while a snapshot is held. Throws nothing if the disk's free space is not known.
// `root`: as for memory_limit().
void report_checkpoint_costs(const Saver& saver, const std::string& directory, const std::string& root = "/");

// NotFoundError, PermissionDeniedError, ...: files cannot be made in the directory, which is created.
void check_writable(FileSystem& files, const std::string& directory);

}  // namespace longhaul
