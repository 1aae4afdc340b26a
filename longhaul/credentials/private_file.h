#pragma once

#include <cstddef>
#include <string>

namespace longhaul {

inline constexpr size_t kMostCredentialBytes = size_t{1} << 20;

// The contents of a file with credentials. NotFoundError, PermissionDeniedError: it is missing, or cannot be read.
// InvalidArgumentError: it is no regular file, empty, or larger than kMostCredentialBytes.
std::string read_public_file(const std::string& path);

// The same for a secret. PermissionDeniedError: others may read or change the file; the message has the command that
// ends it. Nobody but its owner may; if that is root and this process is not, the group may read it too: so have
// Kubernetes and the packages of a system it.
std::string read_private_file(const std::string& path);

}  // namespace longhaul
