#pragma once

#include <string>

namespace longhaul {

// Why nobody can listen on that address, which has just failed: it is tried once more. AlreadyExistsError: it is in
// use; InvalidArgumentError: it is no address of this machine; PermissionDeniedError: a port below 1024; else
// UnavailableError. Each names the address and the remedy.
[[noreturn]] void throw_listen_error(const std::string& address);

}  // namespace longhaul
