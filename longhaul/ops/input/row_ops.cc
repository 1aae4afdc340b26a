#include "longhaul/ops/input/row_ops.h"

#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {

Output random_shuffle(const Scope& scope, const Output& x, int64_t seed, std::string_view name) {
  return scope.add("RandomShuffle", name, {x}, {{"T", x.dtype()}, {"seed", seed}, {"seed2", int64_t{0}}}).output();
}

Output gather_rows(const Scope& scope, const Output& x, const Output& indices, std::string_view name) {
  const Output axis = constant(scope, int64_t{0}, std::string(name) + "/axis");
  return scope
      .add("GatherV2", name, {x, indices, axis},
           {{"Tparams", x.dtype()}, {"Tindices", indices.dtype()}, {"Taxis", kInt64}, {"batch_dims", int64_t{0}}})
      .output();
}

Output mask_rows(const Scope& scope, const Output& x, const Output& mask, std::string_view name) {
  return scope.add("BooleanMask", name, {x, mask}, {{"T", x.dtype()}}).output();
}

Output expand_dims(const Scope& scope, const Output& x, int64_t dim, std::string_view name) {
  const Output where = constant(scope, dim, std::string(name) + "/dim");
  return scope.add("ExpandDims", name, {x, where}, {{"T", x.dtype()}, {"Tdim", kInt64}}).output();
}

Output reshape_any(const Scope& scope, const Output& x, std::vector<int64_t> shape, std::string_view name) {
  const Output sizes = constant(scope, Tensor::of(std::move(shape)), std::string(name) + "/shape");
  return scope.add("Reshape", name, {x, sizes}, {{"T", x.dtype()}, {"Tshape", kInt64}}).output();
}

Output pack(const Scope& scope, const std::vector<Output>& parts, int64_t axis, std::string_view name) {
  const DType dtype = parts.empty() ? kFloat : parts[0].dtype();
  return scope.add("Pack", name, parts, {{"T", dtype}, {"N", static_cast<int64_t>(parts.size())}, {"axis", axis}})
      .output();
}

}  // namespace longhaul::ops
