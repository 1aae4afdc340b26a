#pragma once

#include <string>

namespace longhaul {

// Drops the kernel's cached pages of a file, as far as they are on disk, so that the next read goes to the disk. A
// hint: some file systems ignore it, and errors are not reported, not even for a path that is not a file of this
// machine.
void forget_cached(const std::string& path);

}  // namespace longhaul
