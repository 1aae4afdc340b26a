#include "longhaul/console/text/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace longhaul::console {
namespace {

constexpr size_t kColumnsOfUnknown = 80, kFewestOfATerminal = 20;

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

size_t columns_at(int descriptor) {
  const std::string_view told = variable("COLUMNS");
  size_t columns = 0;
  if (std::from_chars(told.data(), told.data() + told.size(), columns).ec == std::errc{} && columns > 0) {
    return std::max(columns, kFewestOfATerminal);
  }
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumnsOfUnknown;
  return std::max<size_t>(size.ws_col, kFewestOfATerminal);
}

bool is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = variable(name);
    if (locale.empty()) continue;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

const char* code_of(Paint paint) {
  switch (paint) {
    case Paint::kPlain: return "0";
    case Paint::kBold: return "1";
    case Paint::kDim: return "2";
    case Paint::kRed: return "31";
    case Paint::kGreen: return "32";
    case Paint::kYellow: return "33";
  }
  return "0";
}

}  // namespace

Terminal terminal_at(int descriptor) {
  if (::isatty(descriptor) != 1) return {};
  const bool is_dumb = variable("TERM").empty() || variable("TERM") == "dumb";
  return {.is_terminal = true,
          .columns = columns_at(descriptor),
          .has_colours = !is_dumb && variable("NO_COLOR").empty(),
          .can_redraw = !is_dumb,
          .has_blocks = is_utf8()};
}

std::string painted(std::string_view text, Paint paint, const Terminal& terminal) {
  if (!terminal.has_colours || paint == Paint::kPlain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(paint), text);
}

}  // namespace longhaul::console
