#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "longhaul/ops/state_ops.h"
#include "longhaul/session/session.h"

namespace longhaul {

// A tensor and the name to show it under, by default its own.
struct LoggedTensor {
  LoggedTensor(std::string name, Fetch fetch) : tag(std::move(name)), tensor(std::move(fetch)) {}
  LoggedTensor(const Output& output) : tag(output.name()), tensor(output) {}
  LoggedTensor(const Variable& variable) : tag(variable.name()), tensor(variable) {}
  LoggedTensor(const std::string& name) : tag(name), tensor(name) {}
  LoggedTensor(const char* name) : tag(name), tensor(name) {}

  std::string tag;
  Fetch tensor;
};

// The tensor of that name or value. NotFoundError: the graph has none of that name. InvalidArgumentError: it belongs to
// another graph, or is an operation, which has no value. The message begins with `who`.
Output output_of(const Graph& graph, const Fetch& fetch, std::string_view who);

// "0.25", "7", or what a tensor of several elements shows of itself.
std::string text_of(const Tensor& value);

}  // namespace longhaul
