#include "longhaul/base/excerpt.h"

#include <fmt/format.h>

#include <iterator>

namespace longhaul {

std::string excerpt(std::string_view text, size_t most) {
  std::string shown;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      shown += c;
    } else {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}", byte);
    }
  }
  if (text.size() > most) fmt::format_to(std::back_inserter(shown), "... ({} bytes)", text.size());
  return shown;
}

}  // namespace longhaul
