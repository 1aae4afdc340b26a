#pragma once

#include <string_view>

namespace longhaul {

// Whether a line is on the terminal that its writer will replace (Progress): it has no line break at its end, and what
// is written next would follow it on the same line. One for the process. Any thread.
bool has_live_line();
void note_live_line();
// Says that there is none any more, and returns whether there was one: whoever gets true clears or ends it.
bool take_live_line();

inline constexpr std::string_view kClearLine = "\r\x1b[K";  // to the beginning of the line, and erase it

}  // namespace longhaul
