#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "longhaul/runtime/aten/aten_call.h"

namespace longhaul {

// A call of the overload of an operator that writes to given buffers: they follow these arguments.
struct OutCall {
  c10::OperatorHandle op;
  std::vector<AtenArgument> arguments;
};

// Whether this type ("aten::NAME.OVERLOAD") is in the table of operations whose out overload costs no more than the
// functional one.
bool has_out_overload(const std::string& type);

// Whether an element of the result follows from the same elements of the inputs alone, at a cost that memory hides, and
// there is an out overload: it may write over an input of the same shape.
bool is_elementwise(const std::string& type);

// The call of the out overload with the arguments of `functional`. A number takes the form that the functional overload
// gives it, so both compute the same. nullopt: the type is not in the table, this libtorch has no such overload, or a
// number comes from the graph. Then the functional overload is called, which computes the same more slowly.
std::optional<OutCall> bind_out_call(const std::string& type, const AtenCall& functional);

// All types in the table.
std::vector<std::string> types_with_out_overload();

}  // namespace longhaul
