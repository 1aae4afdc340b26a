#include "longhaul/base/first_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul {

std::string first_names(const std::vector<std::string>& names, size_t most) {
  const size_t shown = std::min(names.size(), most);
  const std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return names.size() == shown ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

}  // namespace longhaul
