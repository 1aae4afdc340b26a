#pragma once

#include <cstdint>
#include <string>

namespace longhaul {

// For messages, in powers of 1000: "2.82 MB".
std::string size_text(uint64_t bytes);

}  // namespace longhaul
