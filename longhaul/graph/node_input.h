#pragma once

#include <optional>
#include <string_view>

namespace longhaul {

// The notation in files for a tensor or, after a ^, a control input: "w", "w:1", "^w".
struct NodeInput {
  std::string_view node;  // a part of the parsed text
  int index = 0;
  bool control = false;
};

// nullopt: malformed ("w:", "w:x", "^w:1", "").
std::optional<NodeInput> parse_node_input(std::string_view text);

// The name of the operation in any of these.
std::string_view operation_name(std::string_view text);

}  // namespace longhaul
