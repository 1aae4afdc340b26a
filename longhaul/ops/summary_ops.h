#pragma once

#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul::summary {

// Operations that return a serialised Summary proto (a scalar string tensor); each is added to the collection
// "summaries". The tag is the operation's name with its scopes; characters that TensorBoard cannot show become '_'.

// `value`: one element of any real dtype.
Output scalar(const Scope& scope, std::string_view name, const Output& value);
// `values`: any shape and real dtype. A NaN or an infinity among them fails the run with InvalidArgumentError.
Output histogram(const Scope& scope, std::string_view name, const Output& values);

// All in one. Fails if two carry one tag.
Output merge(const Scope& scope, const std::vector<Output>& summaries, std::string_view name = "Merge");
// What the collection "summaries" has; nothing if that is nothing.
std::optional<Output> merge_all(const Scope& scope);

}  // namespace longhaul::summary
