#include "longhaul/console/text/kernel_text.h"

#include <fstream>

#include "longhaul/base/above_stdio.h"

namespace longhaul::console {

std::string kernel_text(const std::string& path, size_t most) {
  const AboveStdio above;
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace longhaul::console
