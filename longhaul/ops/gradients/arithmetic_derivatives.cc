#include "longhaul/ops/gradients/derivative.h"

namespace longhaul::ops {
namespace {

bool add(Backward& b) {
  if (b.needs("self")) b.give_like("self", b.grad());
  if (b.needs("other")) b.give_like("other", b.times(b.grad(), b.number("alpha", 1)));
  return true;
}

bool sub(Backward& b) {
  if (b.needs("self")) b.give_like("self", b.grad());
  if (b.needs("other")) {
    const double alpha = b.number("alpha", 1);
    const Output sum = b.summed_like(b.grad(), b.input("other"));
    b.give("other", alpha == 1 ? b.negative(sum) : b.times(sum, -alpha));
  }
  return true;
}

bool mul(Backward& b) {
  if (b.needs("self")) b.give_like("self", b.times(b.grad(), b.input("other")));
  if (b.needs("other")) b.give_like("other", b.times(b.grad(), b.input("self")));
  return true;
}

Output divided(Backward& b, const Output& value, const Output& by) {
  return b.aten("aten::div.Tensor", {{"self", value}, {"other", by}});
}

bool div(Backward& b) {
  const Output other = b.input("other");
  if (b.needs("self")) b.give_like("self", divided(b, b.grad(), other));
  if (b.needs("other")) b.give_like("other", b.negative(b.times(b.grad(), divided(b, b.result(), other))));
  return true;
}

bool add_scalar(Backward& b) {
  b.give_like("self", b.grad());
  return true;
}

bool mul_scalar(Backward& b) {
  b.give_like("self", b.aten("aten::mul.Scalar", {{"self", b.grad()}, {"other", b.argument("other")}}));
  return true;
}

bool div_scalar(Backward& b) {
  b.give_like("self", b.aten("aten::div.Scalar", {{"self", b.grad()}, {"other", b.argument("other")}}));
  return true;
}

bool rsub_scalar(Backward& b) {
  const double alpha = b.number("alpha", 1);
  b.give_like("self", alpha == 1 ? b.negative(b.grad()) : b.times(b.grad(), -alpha));
  return true;
}

bool pow_scalar(Backward& b) {
  const double exponent = b.number("exponent", 1);
  const Output self = b.input("self");
  if (exponent == 0) {
    b.give("self", b.aten("aten::zeros_like", {{"self", self}}));
    return true;
  }
  const Output power =
      exponent == 2 ? self : b.aten("aten::pow.Tensor_Scalar", {{"self", self}, {"exponent", exponent - 1}});
  b.give_like("self", b.times(b.grad(), b.times(power, exponent)));
  return true;
}

bool neg(Backward& b) {
  b.give("self", b.negative(b.grad()));
  return true;
}

bool reciprocal(Backward& b) {
  b.give("self", b.negative(b.times(b.grad(), b.times(b.result(), b.result()))));
  return true;
}

bool exp(Backward& b) {
  b.give("self", b.times(b.grad(), b.result()));
  return true;
}

bool log(Backward& b) {
  b.give("self", divided(b, b.grad(), b.input("self")));
  return true;
}

bool sqrt(Backward& b) {
  b.give("self", divided(b, b.grad(), b.times(b.result(), 2)));
  return true;
}

bool rsqrt(Backward& b) {
  const Output cube = b.aten("aten::pow.Tensor_Scalar", {{"self", b.result()}, {"exponent", int64_t{3}}});
  b.give("self", b.times(b.times(b.grad(), cube), -0.5));
  return true;
}

bool abs(Backward& b) {
  b.give("self", b.times(b.grad(), b.aten("aten::sgn", {{"self", b.input("self")}})));
  return true;
}

bool sin(Backward& b) {
  b.give("self", b.times(b.grad(), b.aten("aten::cos", {{"self", b.input("self")}})));
  return true;
}

bool cos(Backward& b) {
  b.give("self", b.negative(b.times(b.grad(), b.aten("aten::sin", {{"self", b.input("self")}}))));
  return true;
}

// The gradient, 0 where self compares so.
Output without(const Backward& b, const Output& gradient, const char* comparison, const Arg& other) {
  const Output mask = b.aten(comparison, {{"self", b.input("self")}, {"other", other}});
  return b.aten("aten::masked_fill.Scalar", {{"self", gradient}, {"mask", mask}, {"value", 0.0}});
}

bool clamp(Backward& b) {
  Output gradient = b.grad();
  for (const auto& [bound, outside] : {std::pair("min", "aten::lt.Scalar"), std::pair("max", "aten::gt.Scalar")}) {
    if (b.op().attrs().contains(bound)) gradient = without(b, gradient, outside, b.argument(bound));
  }
  b.give("self", gradient);
  return true;
}

// To the operand that was chosen, half to each where they are the same.
bool extremum(Backward& b, const char* self_loses, const char* other_loses) {
  const Output other = b.input("other");
  const Output tie = b.aten("aten::eq.Tensor", {{"self", b.input("self")}, {"other", other}});
  const Output shared =
      b.aten("aten::where.self", {{"condition", tie}, {"self", b.times(b.grad(), 0.5)}, {"other", b.grad()}});
  if (b.needs("self")) b.give_like("self", without(b, shared, self_loses, other));
  if (b.needs("other")) b.give_like("other", without(b, shared, other_loses, other));
  return true;
}

bool maximum(Backward& b) {
  return extremum(b, "aten::lt.Tensor", "aten::gt.Tensor");
}

bool minimum(Backward& b) {
  return extremum(b, "aten::gt.Tensor", "aten::lt.Tensor");
}

bool mm(Backward& b) {
  const Output left = b.input("self"), right = b.input("mat2");
  if (b.needs("self")) b.give("self", b.aten("aten::mm", {{"self", b.grad()}, {"mat2", b.transposed(right)}}));
  if (b.needs("mat2")) b.give("mat2", b.aten("aten::mm", {{"self", b.transposed(left)}, {"mat2", b.grad()}}));
  return true;
}

bool addmm(Backward& b) {
  const Output left = b.input("mat1"), right = b.input("mat2");
  const double alpha = b.number("alpha", 1);
  if (b.needs("self")) b.give_like("self", b.times(b.grad(), b.number("beta", 1)));
  if (b.needs("mat1")) {
    b.give("mat1", b.times(b.aten("aten::mm", {{"self", b.grad()}, {"mat2", b.transposed(right)}}), alpha));
  }
  if (b.needs("mat2")) {
    b.give("mat2", b.times(b.aten("aten::mm", {{"self", b.transposed(left)}, {"mat2", b.grad()}}), alpha));
  }
  return true;
}

Output swapped(Backward& b, const Output& matrices) {
  return b.aten("aten::transpose.int", {{"self", matrices}, {"dim0", int64_t{1}}, {"dim1", int64_t{2}}});
}

bool bmm(Backward& b) {
  const Output left = b.input("self"), right = b.input("mat2");
  if (b.needs("self")) b.give("self", b.aten("aten::bmm", {{"self", b.grad()}, {"mat2", swapped(b, right)}}));
  if (b.needs("mat2")) b.give("mat2", b.aten("aten::bmm", {{"self", swapped(b, left)}, {"mat2", b.grad()}}));
  return true;
}

}  // namespace

DerivativeTable arithmetic_derivatives() {
  return {
      {"aten::add.Tensor", {add, {"self", "other"}}},
      {"aten::sub.Tensor", {sub, {"self", "other"}}},
      {"aten::mul.Tensor", {mul, {"self", "other"}}},
      {"aten::div.Tensor", {div, {"self", "other"}}},
      {"aten::add.Scalar", {add_scalar, {"self"}}},
      {"aten::sub.Scalar", {add_scalar, {"self"}}},
      {"aten::mul.Scalar", {mul_scalar, {"self"}}},
      {"aten::div.Scalar", {div_scalar, {"self"}}},
      {"aten::rsub.Scalar", {rsub_scalar, {"self"}}},
      {"aten::pow.Tensor_Scalar", {pow_scalar, {"self"}}},
      {"aten::neg", {neg, {"self"}}},
      {"aten::reciprocal", {reciprocal, {"self"}}},
      {"aten::exp", {exp, {"self"}}},
      {"aten::log", {log, {"self"}}},
      {"aten::sqrt", {sqrt, {"self"}}},
      {"aten::rsqrt", {rsqrt, {"self"}}},
      {"aten::abs", {abs, {"self"}}},
      {"aten::sin", {sin, {"self"}}},
      {"aten::cos", {cos, {"self"}}},
      {"aten::clamp", {clamp, {"self"}}},
      {"aten::maximum", {maximum, {"self", "other"}}},
      {"aten::minimum", {minimum, {"self", "other"}}},
      {"aten::mm", {mm, {"self", "mat2"}}},
      {"aten::addmm", {addmm, {"self", "mat1", "mat2"}}},
      {"aten::bmm", {bmm, {"self", "mat2"}}},
  };
}

}  // namespace longhaul::ops
