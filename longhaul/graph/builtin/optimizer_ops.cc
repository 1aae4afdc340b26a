#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

// var, slots like var..., scalars..., with the gradient (like var) among them.
template <int kRefs, int kInputs, int kGradient>
OpInfo resolve_apply(const OperationSpec& spec) {
  need_inputs(spec, kInputs);
  need_variables(spec, kRefs);
  need_distinct(spec, kRefs);
  for (int i = 1; i < kRefs; ++i) need_same(spec, spec.inputs[0], spec.inputs[static_cast<size_t>(i)]);
  need_same(spec, spec.inputs[0], spec.inputs[kGradient]);
  return {{like(spec.inputs[0])}, kWritesVariable, kRefs};
}

}  // namespace

ResolverTable optimizer_ops() {
  return {
      {"ApplyGradientDescent", resolve_apply<1, 3, 2>}, {"ApplyMomentum", resolve_apply<2, 5, 3>},
      {"ApplyAdam", resolve_apply<3, 10, 9>},           {"ApplyAdagrad", resolve_apply<2, 4, 3>},
      {"ApplyRMSProp", resolve_apply<3, 8, 7>},         {"ApplyCenteredRMSProp", resolve_apply<4, 9, 8>},
      {"ApplyAdadelta", resolve_apply<3, 7, 6>},        {"ApplyFtrl", resolve_apply<3, 8, 3>},
      {"ApplyFtrlV2", resolve_apply<3, 9, 3>},
  };
}

}  // namespace longhaul::builtin
