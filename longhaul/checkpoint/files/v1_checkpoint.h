#pragma once

#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// Checkpoints of TensorFlow's first format, V1, which is not read here: a table in a file that has the checkpoint's
// name, or tables in several, "<prefix>-00000-of-00002" and so on. They are recognised, so that a start beside them is
// refused, and no ordinary file is taken for one: a table has its magic number at its end.

// Whether the file of exactly that name is such a checkpoint. The index of a V2 checkpoint is a table too, and none.
bool is_v1_file(FileSystem& files, const std::string& path);

// The files of the V1 checkpoint `prefix`, which may also be the pattern that TensorFlow's saver gave for it,
// "model.ckpt-3000-?????-of-00002". Empty: there is none.
std::vector<std::string> v1_files(FileSystem& files, const std::string& prefix);

// The prefixes of those in `directory`, named as find_checkpoints() takes them.
std::vector<std::string> find_v1_checkpoints(FileSystem& files, const std::string& directory,
                                             const std::string& basename);

// Where there is no checkpoint `prefix`. UnimplementedError: it is one of V1. NotFoundError: `what`, and, where
// `prefix` is the name of a checkpoint's file, by which name it is to be called.
[[noreturn]] void throw_no_checkpoint(FileSystem& files, const std::string& prefix, const std::string& what);

}  // namespace longhaul
