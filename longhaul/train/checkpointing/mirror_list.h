#pragma once

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/file.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"

namespace longhaul {

// What a mirror keeps: what its state file lists, and what else is there is left alone. Where a crash has left a part
// of that file, which can be without renames, it is the newest that have a step: none that the rule drops at once, as
// an older one may be there for good. Throws what the files do.
CheckpointState read_mirror_list(FileSystem& mirror_files, const MirrorOptions& options);

}  // namespace longhaul
