#pragma once

#include <charconv>
#include <clocale>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace longhaul {

inline std::string_view without_spaces(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Parses the whole text, apart from surrounding spaces, as a decimal number; also "+1", "inf" and "nan". nullopt: not a
// number, or an integer that does not fit. Floating-point numbers that are too large or small become infinite or 0.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  text = without_spaces(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc()) return number;
  if constexpr (std::is_floating_point_v<Number>) {
    if (error == std::errc::result_out_of_range) {
      static const locale_t classic = newlocale(LC_ALL_MASK, "C", nullptr);  // with "." whatever the program has set
      return static_cast<Number>(strtod_l(std::string(text).c_str(), nullptr, classic));
    }
  }
  return std::nullopt;
}

}  // namespace longhaul
