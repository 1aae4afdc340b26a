#include "longhaul/graph/node_input.h"

#include <charconv>

namespace longhaul {

std::optional<NodeInput> parse_node_input(std::string_view text) {
  NodeInput input;
  input.control = text.starts_with('^');
  if (input.control) text.remove_prefix(1);
  const size_t colon = text.rfind(':');
  input.node = text.substr(0, colon);
  if (input.node.empty()) return std::nullopt;
  if (colon == std::string_view::npos) return input;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data() + colon + 1, end, input.index);
  if (result.ec != std::errc() || result.ptr != end || input.index < 0 || input.control) return std::nullopt;
  return input;
}

std::string_view operation_name(std::string_view text) {
  if (text.starts_with('^')) text.remove_prefix(1);
  return text.substr(0, text.rfind(':'));
}

}  // namespace longhaul
