#pragma once

#include <string>
#include <string_view>

namespace longhaul {

// The bytes that this Base64 stands for (RFC 4648, section 4). The first letter that is none of it ends it, such as the
// padding.
std::string decode_base64(std::string_view text);

}  // namespace longhaul
