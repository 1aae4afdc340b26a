#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhaul::console {

// Text of unknown origin (a tensor's name, a tag, an error), made fit for a terminal: valid UTF-8 on one line. Control
// characters, bytes that are not UTF-8, and characters that are invisible or change the direction of writing are
// written as "\x1b" and "\u202e". Text of more than `most` columns is cut in the middle, which keeps the ends of names:
// "layers...weight".
std::string shown(std::string_view text, size_t most = 200);

// The same on several lines: line breaks stay. For messages of errors.
std::string shown_lines(std::string_view text);

// Lines of at most `columns` columns, broken at spaces; each but the first begins with `indent` spaces, and the first
// is taken to begin at that column. 0 columns: one line. The text must be shown() already.
std::string wrapped(std::string_view text, size_t indent, size_t columns);

// How many columns of a terminal the text takes, which must be shown() already.
size_t columns_of(std::string_view text);

}  // namespace longhaul::console
