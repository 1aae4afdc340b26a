#pragma once

#include <string>

#include "longhaul/train/saver.h"

namespace longhaul {

// Logs what a checkpoint will take on the disk and in memory, and warns when the disk of `directory` has no room for
// two: the old one is deleted only after the new one is whole. Throws nothing for a disk that does not tell.
void report_checkpoint_costs(const Saver& saver, const std::string& directory);

// NotFoundError, PermissionDeniedError, ...: files cannot be made in the directory, which is created.
void check_writable(FileSystem& files, const std::string& directory);

}  // namespace longhaul
