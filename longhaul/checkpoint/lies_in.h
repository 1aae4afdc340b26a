#pragma once

#include <string>

#include "longhaul/checkpoint/checkpoint_files.h"

namespace longhaul {

// Whether a checkpoint lies in that directory, and not below it, however the two are spelled. Symbolic links are not
// followed.
inline bool lies_in(const std::string& prefix, const std::string& directory) {
  return directory_name(canonical_prefix(prefix)) == canonical_prefix(directory);
}

}  // namespace longhaul
