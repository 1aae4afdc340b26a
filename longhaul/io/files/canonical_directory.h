#pragma once

#include <string>
#include <string_view>

namespace longhaul {

// One name for a directory of this machine, however it is spelled: absolute, without "file://", dots, symbolic links or
// a trailing slash. The directory need not exist: the existing part of its path is resolved. A link that cannot be
// followed stays. Throws the system's error if the path is relative and the working directory no longer exists.
std::string canonical_directory(const std::string& directory);

// Like canonical_directory(), but throws the system's error for a link that cannot be followed.
std::string resolved_directory(const std::string& directory);

// The absolute path without "file://", for a program that may change its working directory later. Absolute and empty
// paths are returned unchanged. Also for files. Throws as above.
std::string absolute_directory(std::string_view directory);

// The absolute path without "file://", dots or a trailing slash. Links stay. Throws as above.
std::string spelled_directory(const std::string& directory);

}  // namespace longhaul
