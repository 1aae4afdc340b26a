#include <algorithm>
#include <numeric>

#include "longhaul/ops/gradients/derivative.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {
namespace {

// The dimensions that a reduction took, counted from 0, ascending; all of them where none is named.
std::vector<int64_t> reduced_dims(const Backward& b) {
  const int64_t rank = b.input("self").shape().rank();
  std::vector<int64_t> dims = b.constant<std::vector<int64_t>>("dim", {});
  if (const auto* one = b.op().find_attr<int64_t>("dim")) dims = {*one};
  if (dims.empty()) {
    dims.resize(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (int64_t& dim : dims) dim = dim < 0 ? dim + rank : dim;
  std::sort(dims.begin(), dims.end());
  return dims;
}

// With the dimensions that the reduction left out, as ones; a scalar needs none.
Output with_reduced_dims(const Backward& b, Output value) {
  if (b.constant("keepdim", false) || value.shape() == Shape{}) return value;
  for (int64_t dim : reduced_dims(b)) value = b.aten("aten::unsqueeze", {{"self", value}, {"dim", dim}});
  return value;
}

void give_expanded(Backward& b, Output gradient) {
  const Output self = b.input("self");
  if (gradient.dtype() != self.dtype())
    gradient = b.aten("aten::to.dtype", {{"self", gradient}, {"dtype", self.dtype()}});
  b.give("self", b.aten("aten::expand", {{"self", gradient}, {"size", b.sizes(self)}}));
}

// How many elements became one, -1 if that is not known.
int64_t static_count(const Backward& b, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    const int64_t size = b.input("self").shape().dim(static_cast<int>(dim));
    if (size < 0) return -1;
    count *= size;
  }
  return count;
}

Output divided_by(const Backward& b, const Output& gradient, const Output& sizes) {
  const Output count = b.aten("aten::prod", {{"self", sizes}});
  return b.aten("aten::div.Tensor", {{"self", gradient}, {"other", count}});
}

Output averaged(const Backward& b, const Output& gradient, const std::vector<int64_t>& dims) {
  const Output self = b.input("self");
  const int64_t count = static_count(b, dims);
  if (count >= 0) return b.aten("aten::div.Scalar", {{"self", gradient}, {"other", count}});
  const Output sizes = shape(b.scope(), self);
  const Output which = constant(b.scope(), Tensor::of(dims), "dims");
  return divided_by(b, gradient,
                    b.aten("aten::index_select", {{"self", sizes}, {"dim", int64_t{0}}, {"index", which}}));
}

bool sum_all(Backward& b) {
  give_expanded(b, b.grad());
  return true;
}

bool sum_dims(Backward& b) {
  if (!b.input("self").shape().has_rank()) return false;
  give_expanded(b, with_reduced_dims(b, b.grad()));
  return true;
}

bool mean_all(Backward& b) {
  const Output self = b.input("self");
  give_expanded(b, self.shape().has_rank() ? averaged(b, b.grad(), reduced_dims(b))
                                           : divided_by(b, b.grad(), shape(b.scope(), self)));
  return true;
}

bool mean_dims(Backward& b) {
  if (!b.input("self").shape().has_rank()) return false;
  give_expanded(b, with_reduced_dims(b, averaged(b, b.grad(), reduced_dims(b))));
  return true;
}

// To the extreme elements, in equal parts where there are several.
bool extreme(Backward& b) {
  const Output self = b.input("self");
  if (!self.shape().has_rank()) return false;
  const Output mask = b.aten("aten::eq.Tensor", {{"self", self}, {"other", with_reduced_dims(b, b.result())}});
  const Output ties = b.aten("aten::sum.dim_IntList", {{"self", mask}, {"dim", reduced_dims(b)}, {"keepdim", true}});
  const Output share = b.aten("aten::div.Tensor", {{"self", with_reduced_dims(b, b.grad())}, {"other", ties}});
  b.give("self", b.times(share, mask));
  return true;
}

bool extreme_with_index(Backward& b) {
  b.give("self", b.aten("aten::value_selecting_reduction_backward", {{"grad", b.grad()},
                                                                     {"dim", b.argument("dim")},
                                                                     {"indices", b.result(1)},
                                                                     {"sizes", b.sizes(b.input("self"))},
                                                                     {"keepdim", b.argument("keepdim", false)}}));
  return true;
}

bool logsumexp(Backward& b) {
  const Output self = b.input("self");
  if (!self.shape().has_rank()) return false;
  const Output difference = b.aten("aten::sub.Tensor", {{"self", self}, {"other", with_reduced_dims(b, b.result())}});
  b.give("self", b.times(with_reduced_dims(b, b.grad()), b.aten("aten::exp", {{"self", difference}})));
  return true;
}

// Of the euclidean norm: what points along self; nothing at 0, where it has no direction.
bool vector_norm(Backward& b) {
  const Output self = b.input("self");
  if (!self.shape().has_rank() || b.number("ord", 2) != 2 || self.dtype() != b.result().dtype()) return false;
  const Output norm = with_reduced_dims(b, b.result());
  const Output zero = b.aten("aten::eq.Scalar", {{"self", norm}, {"other", 0.0}});
  const Output ratio = b.aten("aten::div.Tensor", {{"self", with_reduced_dims(b, b.grad())}, {"other", norm}});
  const Output factor = b.aten("aten::masked_fill.Scalar", {{"self", ratio}, {"mask", zero}, {"value", 0.0}});
  b.give("self", b.times(self, factor));
  return true;
}

}  // namespace

DerivativeTable reduction_derivatives() {
  return {
      {"aten::sum", {sum_all, {"self"}}},
      {"aten::sum.dim_IntList", {sum_dims, {"self"}}},
      {"aten::mean", {mean_all, {"self"}}},
      {"aten::mean.dim", {mean_dims, {"self"}}},
      {"aten::amax", {extreme, {"self"}}},
      {"aten::amin", {extreme, {"self"}}},
      {"aten::max.dim", {extreme_with_index, {"self"}}},
      {"aten::min.dim", {extreme_with_index, {"self"}}},
      {"aten::logsumexp", {logsumexp, {"self"}}},
      {"aten::linalg_vector_norm", {vector_norm, {"self"}}},
  };
}

}  // namespace longhaul::ops
