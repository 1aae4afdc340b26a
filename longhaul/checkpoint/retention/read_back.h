#pragma once

#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// Which checkpoints a Saver reads back after the commit, to check that the disk has what was written.
enum class Verification {
  kNever,
  kBeforeDeletion,  // those after which older ones are deleted: a good one is never deleted for an unreadable one
  kAlways,
};

// Reads all of a checkpoint that was just committed, from the disk rather than the kernel's cache, and compares the
// checksums. DataLossError: it is damaged; it was renamed (checkpoint/files/corrupt_set.h) and is no longer a
// checkpoint. Throws as BundleReader does if it cannot be read for another reason (such as too many open files), and as
// the file system does if the rename fails: then it is still there.
void read_back(FileSystem& files, const std::string& prefix, const std::string& meta_suffix);

}  // namespace longhaul
