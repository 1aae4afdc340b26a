#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Writes a file so that a crash or an error at any moment leaves the old file of that name (or none, if there was none)
// or the new one, intact:
//   1. The bytes go to a temporary file next to `path`, whose directory is made if there is none.
//   2. They are synced: no rename before they are durable.
//   3. The file gets its name: this is the commit.
//   4. The directory is synced, and the name is durable.
// An error leaves no temporary file; a kill may leave one, `<path>.tempstate...`. `expected_bytes` as in
// FileSystem::LargeFileOptions.
//
// If this process has locked the directory, ownership is checked before the first byte and before the rename:
// DirectoryLostError. Other errors are those of `write` and the file system.
void write_committed_file(FileSystem& files, const std::string& path, uint64_t expected_bytes,
                          const std::function<void(WritableFile&)>& write);

}  // namespace longhaul
