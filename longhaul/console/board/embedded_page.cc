#include "longhaul/console/board/embedded_page.h"

#include "longhaul/status/page_text.h"

namespace longhaul {
namespace embedded {

// cmake/embed.cmake
extern const std::string_view board_html, board_css, board_js, dygraph_css, dygraph_js, dygraph_licence;

}  // namespace embedded

namespace console {

const std::vector<EmbeddedFile>& embedded_page() {
  constexpr const char* kCss = "text/css; charset=utf-8";
  constexpr const char* kScript = "text/javascript; charset=utf-8";
  static const auto& files = *new std::vector<EmbeddedFile>{
      {"/", "text/html; charset=utf-8", embedded::board_html},
      {"/board.css", kCss, embedded::board_css},
      {"/shared.js", kScript, kSharedScript},
      {"/board.js", kScript, embedded::board_js},
      {"/dygraph.css", kCss, embedded::dygraph_css},
      {"/dygraph.js", kScript, embedded::dygraph_js},
      {"/dygraph-licence.txt", "text/plain; charset=utf-8", embedded::dygraph_licence},
  };
  return files;
}

}  // namespace console
}  // namespace longhaul
