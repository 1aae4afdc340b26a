#pragma once

#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Which checkpoints a Saver reads back after the commit, to check that the disk has what was written.
enum class Verification {
  kNever,
  kBeforeDeletion,  // those after which older ones are deleted, so that no good one is deleted for an unreadable one
  kAlways,
};

// Reads all of a checkpoint that was just committed, from the disk rather than the kernel's cache, and compares the
// checksums. DataLossError: the checkpoint is damaged. It was renamed (checkpoint/files/corrupt_set.h), so it does not
// count as a checkpoint any more. If it cannot be read for another reason (such as too many open files), throws what
// BundleReader throws. If the rename fails, throws what the file system throws; the checkpoint is then still there.
void read_back(FileSystem& files, const std::string& prefix, const std::string& meta_suffix);

}  // namespace longhaul
