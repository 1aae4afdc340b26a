#include "longhaul/console/board/query_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"

namespace longhaul::console {
namespace {

// All of the text, and nothing else.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <typename Number>
Number parameter(const HttpQuery& query, const std::string& name, Number lowest, Number highest,
                 std::optional<Number> otherwise) {
  const auto found = query.find(name);
  if (found == query.end() && otherwise) return *otherwise;
  const std::string text = found != query.end() ? found->second : "";
  const auto number = parse_number<Number>(text);
  if (number && *number >= lowest && *number <= highest) return *number;
  throw InvalidArgumentError(
      fmt::format("{}={} must be a number from {} to {}", name, excerpt(text, 40), lowest, highest));
}

}  // namespace

int64_t integer_in(const HttpQuery& query, const std::string& name, int64_t lowest, int64_t highest,
                   std::optional<int64_t> otherwise) {
  return parameter<int64_t>(query, name, lowest, highest, otherwise);
}

double number_in(const HttpQuery& query, const std::string& name, double lowest, double highest, double otherwise) {
  return parameter<double>(query, name, lowest, highest, otherwise);
}

std::vector<int64_t> integers_in(const HttpQuery& query, const std::string& name, int64_t highest, size_t most) {
  const auto found = query.find(name);
  std::string_view text = found != query.end() ? std::string_view(found->second) : std::string_view();
  std::vector<int64_t> numbers;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto number = parse_number<int64_t>(text.substr(0, comma));
    const bool is_new = number && std::find(numbers.begin(), numbers.end(), *number) == numbers.end();
    if (!is_new || *number < 0 || *number > highest || numbers.size() >= most) {
      throw InvalidArgumentError(fmt::format("{}={} must be 1 to {} numbers from 0 to {}, each once, with commas", name,
                                             excerpt(found != query.end() ? found->second : "", 40), most, highest));
    }
    numbers.push_back(*number);
    if (comma == text.size()) return numbers;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace longhaul::console
