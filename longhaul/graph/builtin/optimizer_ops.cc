#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

// var, slots like var...
template <int kRefs>
void need_variable_and_slots(const OperationSpec& spec) {
  need_variables(spec, kRefs);
  need_distinct(spec, kRefs);
  for (int i = 1; i < kRefs; ++i) need_same(spec, spec.inputs[0], spec.inputs[static_cast<size_t>(i)]);
  const bool* update_slots = find_attr<bool>(spec, "update_slots");
  if (update_slots != nullptr && !*update_slots) refuse(spec, "update_slots must be true");
}

// var, slots like var..., scalars..., with the gradient (like var) among them.
template <int kRefs, int kInputs, int kGradient>
OpInfo resolve_apply(const OperationSpec& spec) {
  need_inputs(spec, kInputs);
  need_variable_and_slots<kRefs>(spec);
  need_same(spec, spec.inputs[0], spec.inputs[kGradient]);
  return {{like(spec.inputs[0])}, kWritesVariable, kRefs};
}

// A row like those of the variable for each index.
void need_rows(const OperationSpec& spec, const Output& variable, const Output& values, const Output& indices) {
  if (!is_floating(variable.dtype()) || values.dtype() != variable.dtype()) {
    refuse(spec, fmt::format("{} is {}, the rows {} are {}: both must be of one floating-point type", variable.name(),
                             dtype_name(variable.dtype()), values.name(), dtype_name(values.dtype())));
  }
  const Shape &table = variable.shape(), &numbers = indices.shape();
  if (!numbers.compatible_with({-1})) refuse(spec, "indices must be a vector, not " + numbers.to_string());
  if (!table.has_rank()) return;
  if (table.rank() == 0) refuse(spec, variable.name() + " is a scalar and has no rows");
  std::vector<int64_t> wanted = table.dims();
  wanted[0] = numbers.has_rank() ? numbers.dim(0) : -1;
  if (values.shape().compatible_with(Shape(wanted))) return;
  refuse(spec, fmt::format("{} is {}, with {} indices the rows {} cannot be {}", variable.name(), table.to_string(),
                           numbers.to_string(), values.name(), values.shape().to_string()));
}

// The same with rows of the gradient and their indices in place of it.
template <int kRefs, int kInputs, int kValues, int kIndices = kValues + 1>
OpInfo resolve_rows(const OperationSpec& spec) {
  need_inputs(spec, kInputs);
  need_variable_and_slots<kRefs>(spec);
  need_index(spec, kIndices);
  need_rows(spec, spec.inputs[0], spec.inputs[kValues], spec.inputs[kIndices]);
  return {{like(spec.inputs[0])}, kWritesVariable, kRefs};
}

}  // namespace

ResolverTable optimizer_ops() {
  return {
      {"ApplyGradientDescent", resolve_apply<1, 3, 2>}, {"ApplyMomentum", resolve_apply<2, 5, 3>},
      {"ApplyAdam", resolve_apply<3, 10, 9>},           {"ApplyAdagrad", resolve_apply<2, 4, 3>},
      {"ApplyRMSProp", resolve_apply<3, 8, 7>},         {"ApplyCenteredRMSProp", resolve_apply<4, 9, 8>},
      {"ApplyAdadelta", resolve_apply<3, 7, 6>},        {"ApplyFtrl", resolve_apply<3, 8, 3>},
      {"ApplyFtrlV2", resolve_apply<3, 9, 3>},          {"ScatterSub", resolve_rows<1, 3, 2, 1>},
      {"SparseApplyMomentum", resolve_rows<2, 6, 3>},   {"SparseApplyAdagrad", resolve_rows<2, 5, 3>},
      {"SparseApplyRMSProp", resolve_rows<3, 9, 7>},    {"SparseApplyCenteredRMSProp", resolve_rows<4, 10, 8>},
      {"SparseApplyAdadelta", resolve_rows<3, 8, 6>},   {"SparseApplyFtrl", resolve_rows<3, 9, 3>},
      {"SparseApplyFtrlV2", resolve_rows<3, 10, 3>},
  };
}

}  // namespace longhaul::builtin
