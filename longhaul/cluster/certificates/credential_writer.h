#pragma once

#include <string>
#include <string_view>

namespace longhaul {

// Writes a file so that it appears whole or not at all, and is on the disk when this returns. A secret one has mode
// 0600 from its beginning, any other 0644. AlreadyExistsError: it is there, and `replace` is false. Otherwise it is
// replaced. Throws the system's errors; nothing is left then.
void write_credential(const std::string& path, std::string_view contents, bool is_secret, bool replace);

}  // namespace longhaul
