#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::console {

// Where text goes. By default no terminal: plain lines of any length.
struct Terminal {
  bool is_terminal = false;
  size_t columns = 0;  // of a line; 0: any number
  bool has_colours = false;
  bool can_redraw = false;  // what is on a line may be drawn again (it is not "dumb")
  bool has_blocks = false;  // it shows UTF-8, so that bars may have eighths of a column
};

// What is at that descriptor, by the environment (NO_COLOR, TERM, COLUMNS, LC_ALL, LC_CTYPE, LANG).
Terminal terminal_at(int descriptor);

enum class Paint { kPlain, kBold, kDim, kRed, kGreen, kYellow };

// In that colour, where there are colours.
std::string painted(std::string_view text, Paint paint, const Terminal& terminal);

}  // namespace longhaul::console
