#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Checkpoints of TensorFlow's first format, V1, which the library cannot read: a table in a file with the checkpoint's
// name, or tables in several files, "<prefix>-00000-of-00002" and so on. They are recognised so that a training run
// next to them can be refused. Other files are not mistaken for them, because a table ends with its magic number.

// Whether the file of exactly that name is such a checkpoint. The index of a V2 checkpoint is also a table, but does
// not count.
bool is_v1_file(FileSystem& files, const std::string& path);

// The files of the V1 checkpoint `prefix`, which may also be the pattern that TensorFlow's saver gave for it,
// "model.ckpt-3000-?????-of-00002". Empty: there is none.
std::vector<std::string> v1_files(FileSystem& files, const std::string& prefix);

// The prefixes of V1 checkpoints in `directory`, filtered by name as in find_checkpoints().
std::vector<std::string> find_v1_checkpoints(FileSystem& files, const std::string& directory,
                                             const std::string& basename);

// Call it when there is no checkpoint `prefix`. UnimplementedError: it is a V1 checkpoint. NotFoundError: the message
// is `what`; if `prefix` is the name of one of a checkpoint's files, it also names the prefix to use instead.
[[noreturn]] void throw_no_checkpoint(FileSystem& files, const std::string& prefix, const std::string& what);

}  // namespace longhaul
