#include "longhaul/base/size_text.h"

#include <fmt/format.h>

namespace longhaul {

std::string size_text(uint64_t bytes) {
  double size = static_cast<double>(bytes);
  for (const char* unit : {"bytes", "kB", "MB"}) {
    if (size < 1000) return fmt::format("{:.3g} {}", size, unit);
    size /= 1000;
  }
  return fmt::format("{:.1f} GB", size);
}

}  // namespace longhaul
