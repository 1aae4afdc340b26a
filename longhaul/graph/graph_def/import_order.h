#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "longhaul/proto/graph.pb.h"

namespace longhaul {

// Node numbers by name. InvalidArgumentError: two nodes with the same name, or a name with absurdly many scopes.
std::unordered_map<std::string_view, int> number_nodes(const proto::GraphDef& graph_def);

// An order of the nodes in which each comes after those that it `needs`; the file's order, if that qualifies.
// UnimplementedError: there is none, because of a loop, which the message shows.
std::vector<int> order_nodes(const proto::GraphDef& graph_def, const std::vector<std::vector<int>>& needs);

}  // namespace longhaul
