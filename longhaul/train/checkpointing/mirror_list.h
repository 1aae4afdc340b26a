#pragma once

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/file.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"

namespace longhaul {

// The checkpoints that a mirror manages: those in its state file; others there are left alone. If a crash left only
// part of that file, which can happen without renames, they are the newest ones with a step, only as many as the rule
// keeps, since an older one may be kept for good. Throws what the file system throws.
CheckpointState read_mirror_list(FileSystem& mirror_files, const MirrorOptions& options);

}  // namespace longhaul
