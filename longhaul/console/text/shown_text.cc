#include "longhaul/console/text/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

namespace longhaul::console {
namespace {

constexpr std::string_view kCut = "...";
constexpr size_t kMostLines = 100;

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 1;
  bool is_valid = false;
};

// The one at the beginning of the text, which is not empty. Surrogates and overlong forms are none.
CodePoint first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t value = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kLeast[bytes] || value > 0x10ffff || is_surrogate) return {};
  return {value, bytes, true};
}

using Range = std::pair<uint32_t, uint32_t>;

template <size_t n>
bool is_in(const std::array<Range, n>& ranges, uint32_t value) {
  for (const auto& [first, last] : ranges) {
    if (value >= first && value <= last) return true;
  }
  return false;
}

// Controls, and what is invisible or changes the direction of writing.
bool is_unfit(uint32_t value) {
  constexpr std::array<Range, 13> kUnfit{{{0x00, 0x1f},
                                          {0x7f, 0x9f},
                                          {0xad, 0xad},
                                          {0x61c, 0x61c},
                                          {0x115f, 0x1160},
                                          {0x180e, 0x180e},
                                          {0x200b, 0x200f},
                                          {0x2028, 0x202e},
                                          {0x2060, 0x206f},
                                          {0xfe00, 0xfe0f},
                                          {0xfeff, 0xfeff},
                                          {0xfff0, 0xfffb},
                                          {0xe0000, 0x10ffff}}};
  return is_in(kUnfit, value);
}

size_t width_of(uint32_t value) {
  constexpr std::array<Range, 2> kNone{{{0x300, 0x36f}, {0x20d0, 0x20ff}}};
  constexpr std::array<Range, 6> kWide{
      {{0x1100, 0x115e}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xff00, 0xff60}, {0x1f300, 0x1faff}}};
  if (is_in(kNone, value)) return 0;
  return is_in(kWide, value) || (value >= 0x20000 && value <= 0x3fffd) ? 2 : 1;
}

std::string escaped(const CodePoint& point, std::string_view text) {
  if (point.is_valid && !is_unfit(point.value)) return std::string(text.substr(0, point.bytes));
  if (!point.is_valid || point.value < 0x80) return fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
  return fmt::format("\\u{:04x}", point.value);
}

// As much of the beginning as `most` columns have room for.
std::string head_of(std::string_view text, size_t most, bool with_breaks = false) {
  std::string head;
  for (size_t columns = 0; !text.empty();) {
    const CodePoint point = first_of(text);
    const bool is_break = with_breaks && text[0] == '\n';
    const std::string piece = is_break ? "\n" : escaped(point, text);
    columns += columns_of(piece);
    if (columns > most) break;
    head += piece;
    text.remove_prefix(point.bytes);
  }
  return head;
}

// As much of the end: whole characters of it.
std::string tail_of(std::string_view text, size_t most) {
  size_t begin = text.size() > 4 * most ? text.size() - 4 * most : 0;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  for (text.remove_prefix(begin); !text.empty(); text.remove_prefix(first_of(text).bytes)) {
    const std::string tail = head_of(text, 4 * text.size());
    if (columns_of(tail) <= most) return tail;
  }
  return "";
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const CodePoint point = first_of(text);
    columns += width_of(point.value);
    text.remove_prefix(point.bytes);
  }
  return columns;
}

std::string shown(std::string_view text, size_t most) {
  const std::string_view begin = text.substr(0, 4 * most + 4);
  const std::string whole = head_of(begin, 10 * begin.size());
  if (begin.size() == text.size() && columns_of(whole) <= most) return whole;
  if (most <= kCut.size()) return head_of(text, most);
  const size_t kept = most - kCut.size();
  return fmt::format("{}{}{}", head_of(text, kept - kept / 2), kCut, tail_of(text, kept / 2));
}

std::string wrapped(std::string_view text, size_t indent, size_t columns) {
  constexpr size_t kFewest = 16;
  const size_t room = columns == 0 ? 0 : std::max(kFewest, columns - std::min(columns, indent));
  std::string lines;
  size_t used = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const size_t width = columns_of(word);
    if (used > 0 && room > 0 && used + 1 + width > room) {
      lines += "\n" + std::string(indent, ' ');
      used = 0;
    } else if (used > 0) {
      lines += " ";
      ++used;
    }
    lines += word;
    used += width;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string shown_lines(std::string_view text) {
  size_t end = 0;
  for (size_t lines = 0; lines < kMostLines && end != text.npos; ++lines) end = text.find('\n', end + 1);
  constexpr size_t kMostBytes = 20000;
  const std::string_view kept = text.substr(0, std::min(end, kMostBytes));
  std::string lines = head_of(kept, 10 * kMostBytes, true);
  if (kept.size() < text.size()) fmt::format_to(std::back_inserter(lines), "... ({} bytes)", text.size());
  return lines;
}

}  // namespace longhaul::console
