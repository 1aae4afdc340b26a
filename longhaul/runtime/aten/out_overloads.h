#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

namespace longhaul {

// The overload of an operator that writes to given buffers, which follow its other arguments.
struct OutOverload {
  c10::OperatorHandle op;
  std::vector<c10::IValue> constants;  // after the functional overload's arguments, before the buffers
};

// Whether this type ("aten::NAME.OVERLOAD") is in the table of operations whose out overload costs no more than the
// functional one.
bool has_out_overload(const std::string& type);

// nullopt: it is not in the table, or this libtorch has no such overload with the arguments of `functional`. Then the
// functional overload is called, which computes the same more slowly.
std::optional<OutOverload> find_out_overload(const std::string& type, const c10::FunctionSchema& functional);

// All types in the table.
std::vector<std::string> types_with_out_overload();

}  // namespace longhaul
