#include "longhaul/ops/array_ops.h"

#include "longhaul/ops/aten_op.h"

namespace longhaul::ops {

Output reshape(const Scope& scope, const Output& x, std::vector<int64_t> shape, std::string_view name) {
  return aten(scope, "aten::reshape", name, {{"self", x}, {"shape", std::move(shape)}}).output();
}
Output reshape(const Scope& scope, const Output& x, const Output& shape, std::string_view name) {
  return aten(scope, "aten::reshape", name, {{"self", x}, {"shape", shape}}).output();
}
Output flatten(const Scope& scope, const Output& x, int64_t start_dim, int64_t end_dim, std::string_view name) {
  return aten(scope, "aten::flatten.using_ints", name, {{"self", x}, {"start_dim", start_dim}, {"end_dim", end_dim}})
      .output();
}
Output squeeze(const Scope& scope, const Output& x, int64_t dim, std::string_view name) {
  return aten(scope, "aten::squeeze.dim", name, {{"self", x}, {"dim", dim}}).output();
}
Output unsqueeze(const Scope& scope, const Output& x, int64_t dim, std::string_view name) {
  return aten(scope, "aten::unsqueeze", name, {{"self", x}, {"dim", dim}}).output();
}
Output expand(const Scope& scope, const Output& x, std::vector<int64_t> shape, std::string_view name) {
  return aten(scope, "aten::expand", name, {{"self", x}, {"size", std::move(shape)}}).output();
}
Output transpose(const Scope& scope, const Output& x, int64_t dim0, int64_t dim1, std::string_view name) {
  return aten(scope, "aten::transpose.int", name, {{"self", x}, {"dim0", dim0}, {"dim1", dim1}}).output();
}
Output permute(const Scope& scope, const Output& x, std::vector<int64_t> dims, std::string_view name) {
  return aten(scope, "aten::permute", name, {{"self", x}, {"dims", std::move(dims)}}).output();
}

Output concat(const Scope& scope, const std::vector<Output>& parts, int64_t dim, std::string_view name) {
  return aten(scope, "aten::cat", name, {{"tensors", parts}, {"dim", dim}}).output();
}
Output stack(const Scope& scope, const std::vector<Output>& parts, int64_t dim, std::string_view name) {
  return aten(scope, "aten::stack", name, {{"tensors", parts}, {"dim", dim}}).output();
}

std::vector<Output> split(const Scope& scope, const Output& x, std::vector<int64_t> sizes, int64_t dim,
                          std::string_view name) {
  const Operation op =
      aten(scope, "aten::split_with_sizes", name, {{"self", x}, {"split_sizes", std::move(sizes)}, {"dim", dim}});
  std::vector<Output> parts;
  for (int i = 0; i < op.num_outputs(); ++i) parts.push_back(op.output(i));
  return parts;
}

Output slice(const Scope& scope, const Output& x, int64_t dim, int64_t start, std::optional<int64_t> end, int64_t step,
             std::string_view name) {
  NamedArgs arguments = {{"self", x}, {"dim", dim}, {"start", start}, {"step", step}};
  if (end) arguments.push_back({"end", *end});
  return aten(scope, "aten::slice.Tensor", name, arguments).output();
}
Output index_select(const Scope& scope, const Output& x, int64_t dim, const Output& indices, std::string_view name) {
  return aten(scope, "aten::index_select", name, {{"self", x}, {"dim", dim}, {"index", indices}}).output();
}
Output gather(const Scope& scope, const Output& x, int64_t dim, const Output& indices, std::string_view name) {
  return aten(scope, "aten::gather", name, {{"self", x}, {"dim", dim}, {"index", indices}}).output();
}
Output where(const Scope& scope, const Output& condition, const Output& a, const Output& b, std::string_view name) {
  return aten(scope, "aten::where.self", name, {{"condition", condition}, {"self", a}, {"other", b}}).output();
}

}  // namespace longhaul::ops
