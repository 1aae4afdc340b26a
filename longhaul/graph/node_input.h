#pragma once

#include <optional>
#include <string_view>

namespace longhaul {

// How files name a tensor or, after a ^, what must run before: "w", "w:1", "^w".
struct NodeInput {
  std::string_view node;  // a part of the text that was parsed
  int index = 0;
  bool control = false;
};

// Nothing: malformed ("w:", "w:x", "^w:1", "").
std::optional<NodeInput> parse_node_input(std::string_view text);

// The name of the operation in any of these.
std::string_view operation_name(std::string_view text);

}  // namespace longhaul
