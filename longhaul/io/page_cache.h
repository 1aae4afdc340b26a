#pragma once

#include <string>

namespace longhaul {

// What the kernel has cached of a file is forgotten, as far as it is on the disk: the next read asks the disk. A wish,
// which some file systems do not grant, and no error of which is told; a path that is no file of the machine's is none.
void forget_cached(const std::string& path);

}  // namespace longhaul
