#pragma once

#include <string>
#include <string_view>

namespace longhaul {

// One name for a directory of this machine, however it is spelled: absolute, without "file://", dots, symbolic links
// and a last slash. It need not be there: what is there of its path counts. A link that cannot be followed stays. What
// the system throws where a relative path has no working directory any more.
std::string canonical_directory(const std::string& directory);

// As canonical_directory(), but a link that cannot be followed is an error: what the system throws.
std::string resolved_directory(const std::string& directory);

// Absolute, for a program that may change its working directory later: without "file://", what is absolute as it is,
// what is empty too. Also for files. What the system throws, as above.
std::string absolute_directory(std::string_view directory);

// Absolute, without "file://", dots and a last slash; links stay. What the system throws, as above.
std::string spelled_directory(const std::string& directory);

}  // namespace longhaul
