#include "longhaul/ops/math_ops.h"

#include <cmath>

#include "longhaul/ops/aten_op.h"

namespace longhaul {
namespace ops {
namespace {

Output unary(const Scope& scope, const char* type, const Output& x, std::string_view name) {
  return aten(scope, type, name, {{"self", x}}).output();
}

Output binary(const Scope& scope, const char* type, const Output& a, const Output& b, std::string_view name) {
  return aten(scope, type, name, {{"self", a}, {"other", b}}).output();
}

// The number as a Scalar that does not make floats out of integers.
Arg number(const Output& beside, double value) {
  if (is_integer(beside.dtype()) && std::nearbyint(value) == value && std::abs(value) < 9e15)
    return static_cast<int64_t>(value);
  return value;
}

Output with_number(const Scope& scope, const char* type, const Output& a, double b, std::string_view name) {
  return aten(scope, type, name, {{"self", a}, {"other", number(a, b)}}).output();
}

Output reduce(const Scope& scope, const char* type, const Output& x, std::vector<int64_t> dims, bool keepdim,
              std::string_view name) {
  return aten(scope, type, name, {{"self", x}, {"dim", std::move(dims)}, {"keepdim", keepdim}}).output();
}

}  // namespace

Output add(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::add.Tensor", a, b, name);
}
Output sub(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::sub.Tensor", a, b, name);
}
Output mul(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::mul.Tensor", a, b, name);
}
Output div(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::div.Tensor", a, b, name);
}
Output maximum(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::maximum", a, b, name);
}
Output minimum(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::minimum", a, b, name);
}
Output pow(const Scope& scope, const Output& a, const Output& exponent, std::string_view name) {
  return aten(scope, "aten::pow.Tensor_Tensor", name, {{"self", a}, {"exponent", exponent}}).output();
}

Output add(const Scope& scope, const Output& a, double b, std::string_view name) {
  return with_number(scope, "aten::add.Scalar", a, b, name);
}
Output sub(const Scope& scope, const Output& a, double b, std::string_view name) {
  return with_number(scope, "aten::sub.Scalar", a, b, name);
}
Output sub(const Scope& scope, double a, const Output& b, std::string_view name) {
  return with_number(scope, "aten::rsub.Scalar", b, a, name);
}
Output mul(const Scope& scope, const Output& a, double b, std::string_view name) {
  return with_number(scope, "aten::mul.Scalar", a, b, name);
}
Output div(const Scope& scope, const Output& a, double b, std::string_view name) {
  return with_number(scope, "aten::div.Scalar", a, b, name);
}
Output div(const Scope& scope, double a, const Output& b, std::string_view name) {
  return mul(scope, unary(scope, "aten::reciprocal", b, name), a, name);
}
Output pow(const Scope& scope, const Output& a, double exponent, std::string_view name) {
  return aten(scope, "aten::pow.Tensor_Scalar", name, {{"self", a}, {"exponent", number(a, exponent)}}).output();
}

Output neg(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::neg", x, name);
}
Output abs(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::abs", x, name);
}
Output exp(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::exp", x, name);
}
Output log(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::log", x, name);
}
Output sqrt(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::sqrt", x, name);
}
Output rsqrt(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::rsqrt", x, name);
}
Output square(const Scope& scope, const Output& x, std::string_view name) {
  return pow(scope, x, 2, name);
}
Output sin(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::sin", x, name);
}
Output cos(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::cos", x, name);
}

Output addmm(const Scope& scope, const Output& bias, const Output& a, const Output& b, std::string_view name) {
  return aten(scope, "aten::addmm", name, {{"self", bias}, {"mat1", a}, {"mat2", b}}).output();
}

Output sum(const Scope& scope, const Output& x, std::vector<int64_t> dims, bool keepdim, std::string_view name) {
  if (dims.empty() && !keepdim) return unary(scope, "aten::sum", x, name);
  return reduce(scope, "aten::sum.dim_IntList", x, std::move(dims), keepdim, name);
}
Output mean(const Scope& scope, const Output& x, std::vector<int64_t> dims, bool keepdim, std::string_view name) {
  if (dims.empty() && !keepdim) return unary(scope, "aten::mean", x, name);
  return reduce(scope, "aten::mean.dim", x, std::move(dims), keepdim, name);
}
Output max(const Scope& scope, const Output& x, std::vector<int64_t> dims, bool keepdim, std::string_view name) {
  return reduce(scope, "aten::amax", x, std::move(dims), keepdim, name);
}
Output min(const Scope& scope, const Output& x, std::vector<int64_t> dims, bool keepdim, std::string_view name) {
  return reduce(scope, "aten::amin", x, std::move(dims), keepdim, name);
}
Output logsumexp(const Scope& scope, const Output& x, std::vector<int64_t> dims, bool keepdim, std::string_view name) {
  return reduce(scope, "aten::logsumexp", x, std::move(dims), keepdim, name);
}
Output argmax(const Scope& scope, const Output& x, int64_t dim, bool keepdim, std::string_view name) {
  return aten(scope, "aten::argmax", name, {{"self", x}, {"dim", dim}, {"keepdim", keepdim}}).output();
}

Output eq(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::eq.Tensor", a, b, name);
}
Output ne(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::ne.Tensor", a, b, name);
}
Output lt(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::lt.Tensor", a, b, name);
}
Output le(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::le.Tensor", a, b, name);
}
Output gt(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::gt.Tensor", a, b, name);
}
Output ge(const Scope& scope, const Output& a, const Output& b, std::string_view name) {
  return binary(scope, "aten::ge.Tensor", a, b, name);
}
Output logical_not(const Scope& scope, const Output& x, std::string_view name) {
  return unary(scope, "aten::logical_not", x, name);
}

Output cast(const Scope& scope, const Output& x, DType dtype, std::string_view name) {
  return aten(scope, "aten::to.dtype", name, {{"self", x}, {"dtype", dtype}}).output();
}

}  // namespace ops

namespace {
Scope root_of(const Output& output) {
  return Scope(output.graph());
}
}  // namespace

Output operator+(const Output& a, const Output& b) {
  return ops::add(root_of(a), a, b);
}
Output operator-(const Output& a, const Output& b) {
  return ops::sub(root_of(a), a, b);
}
Output operator*(const Output& a, const Output& b) {
  return ops::mul(root_of(a), a, b);
}
Output operator/(const Output& a, const Output& b) {
  return ops::div(root_of(a), a, b);
}
Output operator-(const Output& a) {
  return ops::neg(root_of(a), a);
}
Output operator+(const Output& a, double b) {
  return ops::add(root_of(a), a, b);
}
Output operator-(const Output& a, double b) {
  return ops::sub(root_of(a), a, b);
}
Output operator*(const Output& a, double b) {
  return ops::mul(root_of(a), a, b);
}
Output operator/(const Output& a, double b) {
  return ops::div(root_of(a), a, b);
}
Output operator+(double a, const Output& b) {
  return ops::add(root_of(b), b, a);
}
Output operator-(double a, const Output& b) {
  return ops::sub(root_of(b), a, b);
}
Output operator*(double a, const Output& b) {
  return ops::mul(root_of(b), b, a);
}
Output operator/(double a, const Output& b) {
  return ops::div(root_of(b), a, b);
}

}  // namespace longhaul
