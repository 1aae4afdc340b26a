#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

OpInfo resolve_host_function(const OperationSpec& spec) {
  need_attr<std::shared_ptr<HostFunction>>(spec, "function");
  OpInfo info{{}, kSideEffect};
  for (DType dtype : need_attr<std::vector<DType>>(spec, "dtypes"))
    info.outputs.push_back({dtype, Shape::unknown_rank()});
  return info;
}

// A training step of the program's own: its first input counts the steps, the others are what the function needs.
OpInfo resolve_program_step(const OperationSpec& spec) {
  need_attr<std::shared_ptr<HostFunction>>(spec, "function");
  need_variables(spec, 1);
  need_dtype(spec, 0, kInt64);
  return {{}, kWritesVariable | kSideEffect | kTakesInput | kRandom, 1};
}

// The forward operation's inputs, then the gradients of its outputs; returns the gradients of the inputs numbered in
// `wrt`.
OpInfo resolve_tape_gradient(const OperationSpec& spec) {
  need_attr<std::string>(spec, "forward");
  OpInfo info;
  for (int64_t i : need_attr<std::vector<int64_t>>(spec, "wrt")) {
    if (i < 0 || static_cast<size_t>(i) >= spec.inputs.size()) refuse(spec, fmt::format("wrt names input {}", i));
    info.outputs.push_back(like(spec.inputs[static_cast<size_t>(i)]));
  }
  return info;
}

}  // namespace

ResolverTable function_ops() {
  return {
      {"HostFunction", resolve_host_function},
      {"ProgramStep", resolve_program_step},
      {"TapeGradient", resolve_tape_gradient},
  };
}

}  // namespace longhaul::builtin
