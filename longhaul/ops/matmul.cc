#include <algorithm>

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/math_ops.h"

namespace longhaul::ops {
namespace {

using Dims = std::vector<int64_t>;

int64_t unknown_in(const Dims& dims) {
  return std::count(dims.begin(), dims.end(), -1);
}

// The dimensions before the matrices'.
Dims batch_of(const Dims& dims) {
  return Dims(dims.begin(), dims.end() - 2);
}

Output mm(const Scope& scope, const Output& a, const Output& b, std::string_view name = "mm") {
  return aten(scope, "aten::mm", name, {{"self", a}, {"mat2", b}}).output();
}

Output bmm(const Scope& scope, const Output& a, const Output& b, std::string_view name = "bmm") {
  return aten(scope, "aten::bmm", name, {{"self", a}, {"mat2", b}}).output();
}

// All rows of all matrices of `a` as one matrix.
Output rows_times_matrix(const Scope& scope, const Output& a, const Output& b) {
  Dims dims = a.shape().dims();
  const Output product = mm(scope, reshape(scope, a, Dims{-1, dims.back()}), b);
  dims.back() = b.shape().dim(1);
  return reshape(scope, product, dims);
}

// All dimensions before the matrices' as one.
Output batch_times_batch(const Scope& scope, const Output& a, const Output& b) {
  Dims dims = a.shape().dims();
  const int64_t rows = dims[dims.size() - 2], inner = dims.back(), columns = b.shape().dims().back();
  const Output product =
      bmm(scope, reshape(scope, a, Dims{-1, rows, inner}), reshape(scope, b, Dims{-1, inner, columns}));
  dims.back() = columns;
  return reshape(scope, product, dims);
}

}  // namespace

// What is more than matrices is made into them by reshapes, as far as the static shapes allow, because the derivatives
// of these are known; aten::matmul's comes from the tape.
Output matmul(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  const Dims &left = a.shape().dims(), &right = b.shape().dims();
  if (left.size() == 2 && right.size() == 2) return mm(scope, a, b, name);
  const bool batches = left.size() > 2 && left.size() == right.size() && batch_of(left) == batch_of(right);
  if (batches && left.size() == 3) return bmm(scope, a, b, name);
  const bool sizes_known = left.size() > 2 && left.back() >= 0 && unknown_in(left) <= 1;
  if (sizes_known && right.size() == 2 && right[1] >= 0) return rows_times_matrix(scope.sub(name), a, b);
  if (sizes_known && batches && left[left.size() - 2] >= 0 && right.back() >= 0)
    return batch_times_batch(scope.sub(name), a, b);
  return aten(scope, "aten::matmul", name, {{"self", a}, {"other", b}}).output();
}

}  // namespace longhaul::ops
