#pragma once

#include "longhaul/graph/collection_def.h"
#include "longhaul/proto/variable.pb.h"

namespace longhaul {

// Nothing: the variable, or what is needed to use it, stays out. A missing initial value does not matter.
std::optional<proto::VariableDef> variable_to_proto(const VariableInfo& variable, const NameMap& names);

// InvalidArgumentError: the graph lacks what is named.
VariableInfo variable_from_proto(const Graph& graph, const proto::VariableDef& def, const std::string& prefix);

}  // namespace longhaul
