#pragma once

#include <string>

#include "longhaul/graph/operation.h"

namespace longhaul {

// An operation's attr, or its default: graphs of other programs may leave it out.
template <typename T>
T attr_or(const Operation& op, const std::string& name, const T& otherwise) {
  const T* found = op.find_attr<T>(name);
  return found == nullptr ? otherwise : *found;
}

}  // namespace longhaul
