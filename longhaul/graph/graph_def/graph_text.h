#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace longhaul {

// Parses the text form of a graph, nested no deeper than `deepest` messages. Fields that the message does not have are
// skipped, and named in one warning: newer versions of TensorFlow write them. Returns the first error with its place,
// or an empty string. `name` is for the warning.
std::string parse_graph_text(std::string_view text, const std::string& name, int deepest,
                             google::protobuf::Message* message);

}  // namespace longhaul
