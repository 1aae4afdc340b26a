#include <limits>

#include "longhaul/ops/gradients/derivative.h"

namespace longhaul::ops {
namespace {

bool reshape(Backward& b) {
  b.give("self", b.reshaped_like(b.grad(), b.input("self")));
  return true;
}

bool same(Backward& b) {
  b.give_like("self", b.grad());
  return true;
}

bool t(Backward& b) {
  b.give("self", b.transposed(b.grad()));
  return true;
}

bool transpose(Backward& b) {
  b.give("self", b.aten("aten::transpose.int",
                        {{"self", b.grad()}, {"dim0", b.argument("dim0")}, {"dim1", b.argument("dim1")}}));
  return true;
}

bool permute(Backward& b) {
  const auto dims = b.constant<std::vector<int64_t>>("dims", {});
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> inverse(dims.size());
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = dims[static_cast<size_t>(i)];
    inverse[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = i;
  }
  b.give("self", b.aten("aten::permute", {{"self", b.grad()}, {"dims", inverse}}));
  return true;
}

bool unsqueeze(Backward& b) {
  b.give("self", b.aten("aten::squeeze.dim", {{"self", b.grad()}, {"dim", b.argument("dim")}}));
  return true;
}

bool slice(Backward& b) {
  b.give("self", b.aten("aten::slice_backward", {{"grad_output", b.grad()},
                                                 {"input_sizes", b.sizes(b.input("self"))},
                                                 {"dim", b.argument("dim", int64_t{0})},
                                                 {"start", b.argument("start", int64_t{0})},
                                                 {"end", b.argument("end", std::numeric_limits<int64_t>::max())},
                                                 {"step", b.argument("step", int64_t{1})}}));
  return true;
}

bool select(Backward& b) {
  b.give("self", b.aten("aten::select_backward", {{"grad_output", b.grad()},
                                                  {"input_sizes", b.sizes(b.input("self"))},
                                                  {"dim", b.argument("dim")},
                                                  {"index", b.argument("index")}}));
  return true;
}

bool index_select(Backward& b) {
  b.give("self", b.aten("aten::index_select_backward", {{"grad", b.grad()},
                                                        {"self_sizes", b.sizes(b.input("self"))},
                                                        {"dim", b.argument("dim")},
                                                        {"index", b.input("index")}}));
  return true;
}

bool gather(Backward& b) {
  b.give("self", b.aten("aten::gather_backward", {{"grad", b.grad()},
                                                  {"self", b.input("self")},
                                                  {"dim", b.argument("dim")},
                                                  {"index", b.input("index")},
                                                  {"sparse_grad", false}}));
  return true;
}

// The size of an element of a concatenation along its dimension; -1: not known.
int64_t size_along(const Output& tensor, int64_t dim) {
  if (!tensor.shape().has_rank() || tensor.shape().rank() == 0) return -1;
  return tensor.shape().dim(static_cast<int>(dim < 0 ? dim + tensor.shape().rank() : dim));
}

bool cat(Backward& b) {
  const auto dim = b.constant<int64_t>("dim", 0);
  const std::vector<Output>& parts = b.op().inputs();
  for (const Output& part : parts) {
    if (size_along(part, dim) < 0 || part.dtype() != b.grad().dtype()) return false;
  }
  int64_t start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t end = start + size_along(parts[i], dim);
    if (b.needs_element(i)) {
      b.give("tensors",
             b.aten("aten::slice.Tensor", {{"self", b.grad()}, {"dim", dim}, {"start", start}, {"end", end}}),
             static_cast<int>(i));
    }
    start = end;
  }
  return true;
}

bool stack(Backward& b) {
  for (size_t i = 0; i < b.op().inputs().size(); ++i) {
    if (!b.needs_element(i)) continue;
    const Output part =
        b.aten("aten::select.int",
               {{"self", b.grad()}, {"dim", b.argument("dim", int64_t{0})}, {"index", static_cast<int64_t>(i)}});
    b.give("tensors", part, static_cast<int>(i));
  }
  return true;
}

bool split(Backward& b) {
  std::vector<Output> parts;
  for (int i = 0; i < b.op().num_outputs(); ++i) {
    parts.push_back(b.grad(i).valid() ? b.grad(i) : b.aten("aten::zeros_like", {{"self", b.result(i)}}));
  }
  b.give("self", b.aten("aten::cat", {{"tensors", parts}, {"dim", b.argument("dim", int64_t{0})}}));
  return true;
}

Output without(Backward& b, const Output& gradient, const Output& mask) {
  return b.aten("aten::masked_fill.Scalar", {{"self", gradient}, {"mask", mask}, {"value", int64_t{0}}});
}

bool where(Backward& b) {
  const Output condition = b.input("condition");
  if (b.needs("self")) {
    b.give_like("self", without(b, b.grad(), b.aten("aten::logical_not", {{"self", condition}})));
  }
  if (b.needs("other")) b.give_like("other", without(b, b.grad(), condition));
  return true;
}

bool masked_fill(Backward& b) {
  b.give_like("self", without(b, b.grad(), b.input("mask")));
  return true;
}

}  // namespace

DerivativeTable array_derivatives() {
  return {
      {"aten::reshape", {reshape, {"self", "shape"}}},
      {"aten::view", {reshape, {"self", "size"}}},
      {"aten::flatten.using_ints", {reshape, {"self"}}},
      {"aten::squeeze", {reshape, {"self"}}},
      {"aten::squeeze.dim", {reshape, {"self"}}},
      {"aten::unsqueeze", {unsqueeze, {"self"}}},
      {"aten::expand", {same, {"self", "size"}}},
      {"aten::to.dtype", {same, {"self"}}},
      {"aten::_to_copy", {same, {"self"}}},
      {"aten::clone", {same, {"self"}}},
      {"aten::contiguous", {same, {"self"}}},
      {"aten::t", {t, {"self"}}},
      {"aten::transpose.int", {transpose, {"self"}}},
      {"aten::permute", {permute, {"self"}}},
      {"aten::slice.Tensor", {slice, {"self"}}},
      {"aten::select.int", {select, {"self"}}},
      {"aten::index_select", {index_select, {"self", "index"}}},
      {"aten::gather", {gather, {"self", "index"}}},
      {"aten::cat", {cat, {"tensors"}}},
      {"aten::stack", {stack, {"tensors"}}},
      {"aten::split.Tensor", {split, {"self"}}},
      {"aten::split_with_sizes", {split, {"self"}}},
      {"aten::where.self", {where, {"condition", "self", "other"}}},
      {"aten::masked_fill.Scalar", {masked_fill, {"self", "mask"}}},
  };
}

}  // namespace longhaul::ops
