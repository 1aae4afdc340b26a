#pragma once

#include "longhaul/graph/meta_graph/collection_def.h"
#include "longhaul/proto/variable.pb.h"

namespace longhaul {

// nullopt: the variable, or something needed to use it, is left out. A missing initial value does not matter.
std::optional<proto::VariableDef> variable_to_proto(const VariableInfo& variable, const NameMap& names);

// InvalidArgumentError: the graph lacks a named part of the variable.
VariableInfo variable_from_proto(const Graph& graph, const proto::VariableDef& def, const std::string& prefix);

}  // namespace longhaul
