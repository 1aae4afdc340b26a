#pragma once

#include <string_view>
#include <vector>

namespace longhaul::console {

struct EmbeddedFile {
  const char* path = "";
  const char* content_type = "";
  std::string_view text{};
};

// The files of the page: those of page/, and Debian's dygraphs, which draws the curves, with its licence.
const std::vector<EmbeddedFile>& embedded_page();

}  // namespace longhaul::console
