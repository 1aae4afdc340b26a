#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

// `shapes` are those of the results where the function keeps to them. `takes_input`: each run has it give the next
// input, so what depends on it is not computed by the way.
OpInfo resolve_host_function(const OperationSpec& spec) {
  need_attr<std::shared_ptr<HostFunction>>(spec, "function");
  const auto* takes_input = find_attr<bool>(spec, "takes_input");
  const auto* shapes = find_attr<std::vector<Shape>>(spec, "shapes");
  OpInfo info{{}, kSideEffect | (takes_input != nullptr && *takes_input ? kTakesInput : kPure)};
  for (DType dtype : need_attr<std::vector<DType>>(spec, "dtypes")) {
    const size_t i = info.outputs.size();
    info.outputs.push_back({dtype, shapes != nullptr && i < shapes->size() ? (*shapes)[i] : Shape::unknown_rank()});
  }
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
