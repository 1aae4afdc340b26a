#pragma once

#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// Which checkpoints a Saver reads back once they are committed, to see whether the disk has what was written.
enum class Verification {
  kNever,
  kBeforeDeletion,  // those after which older ones are deleted: a good one never goes for one that nobody could read
  kAlways,
};

// Reads all of a checkpoint that was just committed, from the disk and not from the kernel's cache, and compares the
// checksums. DataLossError: it is damaged; it was renamed (checkpoint/files/corrupt_set.h) and is no checkpoint any
// more. What BundleReader throws where it cannot be read for another reason, too many open files for one, and what the
// file system throws as it is renamed: it is still there.
void read_back(FileSystem& files, const std::string& prefix, const std::string& meta_suffix);

}  // namespace longhaul
