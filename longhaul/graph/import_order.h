#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "longhaul/proto/graph.pb.h"

namespace longhaul {

// Numbers by name. InvalidArgumentError: two nodes of one name, a name of absurdly many scopes.
std::unordered_map<std::string_view, int> number_nodes(const proto::GraphDef& graph_def);

// An order of the nodes in which each comes after those that it `needs`; where the file's order is one, that.
// UnimplementedError: there is none, because of a loop, which the message shows.
std::vector<int> order_nodes(const proto::GraphDef& graph_def, const std::vector<std::vector<int>>& needs);

}  // namespace longhaul
