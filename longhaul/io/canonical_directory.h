#pragma once

#include <string>

namespace longhaul {

// One name for a directory of this machine, however it is spelled: absolute, without "file://", dots, symbolic links
// and a last slash. It need not be there: what is there of its path counts. A link that cannot be followed stays. What
// the system throws where a relative path has no working directory any more.
std::string canonical_directory(const std::string& directory);

}  // namespace longhaul
