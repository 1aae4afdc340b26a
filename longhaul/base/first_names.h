#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace longhaul {

// For messages: "a, b, c and 4 more", with at most `most` of them by name.
std::string first_names(const std::vector<std::string>& names, size_t most = 20);

}  // namespace longhaul
