#pragma once

#include <string>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"

namespace longhaul {

// The checkpoints that a mirror manages: those in its state file. Others in its directory are left alone. Without
// renames, a crash may leave only part of that file. They are then the newest ones with a step, only as many as the
// retention keeps, because an older one may be kept for good. Throws what the file system throws.
CheckpointState read_mirror_list(FileSystem& mirror_files, const MirrorOptions& options);

// The file `checkpoint.unlisted` of a mirror: the base name of the checkpoint that is being copied. It is written
// before the first byte of the copy and removed when the list has it, so that the copy of a process that was killed in
// between can be told from checkpoints that are none of the mirror's. Throw what the file system throws.
void write_unlisted(FileSystem& mirror_files, const std::string& directory, const std::string& name);
void remove_unlisted(FileSystem& mirror_files, const std::string& directory);
std::string read_unlisted(FileSystem& mirror_files, const std::string& directory);  // empty: none, or half of a file

}  // namespace longhaul
