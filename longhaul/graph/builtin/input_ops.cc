#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

int64_t need_positive(const OperationSpec& spec, const std::string& name) {
  const int64_t value = need_attr<int64_t>(spec, name);
  if (value <= 0) refuse(spec, fmt::format("{} must be positive, not {}", name, value));
  return value;
}

OpInfo resolve_example_order(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kInt64);
  need_positive(spec, "num_examples");
  const auto num_epochs = need_attr<int64_t>(spec, "num_epochs");
  if (num_epochs < 0) refuse(spec, fmt::format("num_epochs must not be negative, but is {}", num_epochs));
  const int64_t num_replicas = need_positive(spec, "num_replicas");
  const auto replica = need_attr<int64_t>(spec, "replica");
  if (replica < 0 || replica >= num_replicas) {
    refuse(spec, fmt::format("replica must be 0 to {}, not {}", num_replicas - 1, replica));
  }
  need_attr<int64_t>(spec, "seed");
  need_attr<bool>(spec, "shuffle");
  return {{{kInt64, {need_positive(spec, "batch_size")}}}, kTakesInput};
}

OpInfo resolve_fraction_full(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kInt32);
  need_attr<int64_t>(spec, "above");
  need_positive(spec, "range");
  return {{{kFloat, {}}}};
}

OpInfo resolve_require_elements(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_attr<std::string>(spec, "message");
  return {{like(spec.inputs[0])}};
}

}  // namespace

ResolverTable input_ops() {
  return {
      {"ExampleOrder", resolve_example_order},
      {"FractionFull", resolve_fraction_full},
      {"RequireElements", resolve_require_elements},
  };
}

}  // namespace longhaul::builtin
