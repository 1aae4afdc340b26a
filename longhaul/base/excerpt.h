#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul {

// Text of unknown origin, made fit for a message: on one line, with control characters as "\x0a", and cut if it is
// longer than `most` bytes: "aaaa... (10485760 bytes)".
std::string excerpt(std::string_view text, size_t most = 200);

}  // namespace longhaul
