#pragma once

#include <string>

#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Logs how much disk and memory a checkpoint will take. Warns if the disk of `directory` has no room for two, because
// the old one is deleted only after the new one is complete. Also warns if the process may not use twice the variables'
// memory (memory_limit), which is needed while a snapshot is held. Does not throw if the disk's free space is not
// known. `root`: as for memory_limit().
void report_checkpoint_costs(const Saver& saver, const std::string& directory, const std::string& root = "/");

// Creates the directory. NotFoundError, PermissionDeniedError, ...: files cannot be created in it. `option`: what the
// message calls it, such as "logdir".
void check_writable(FileSystem& files, const std::string& directory, const std::string& option);

}  // namespace longhaul
