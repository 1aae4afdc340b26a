#pragma once

#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {
namespace ops {

// Element-wise arithmetic. Operands are broadcast and promoted as in PyTorch.
Output add(const Scope& scope, const Output& a, const Output& b, std::string_view name = "add");
Output sub(const Scope& scope, const Output& a, const Output& b, std::string_view name = "sub");
Output mul(const Scope& scope, const Output& a, const Output& b, std::string_view name = "mul");
Output div(const Scope& scope, const Output& a, const Output& b, std::string_view name = "div");
Output maximum(const Scope& scope, const Output& a, const Output& b, std::string_view name = "maximum");
Output minimum(const Scope& scope, const Output& a, const Output& b, std::string_view name = "minimum");
Output pow(const Scope& scope, const Output& a, const Output& exponent, std::string_view name = "pow");

// The same with a number. An integer tensor stays an integer tensor if the number is an integer (except in div).
Output add(const Scope& scope, const Output& a, double b, std::string_view name = "add");
Output sub(const Scope& scope, const Output& a, double b, std::string_view name = "sub");
Output sub(const Scope& scope, double a, const Output& b, std::string_view name = "sub");
Output mul(const Scope& scope, const Output& a, double b, std::string_view name = "mul");
Output div(const Scope& scope, const Output& a, double b, std::string_view name = "div");
Output div(const Scope& scope, double a, const Output& b, std::string_view name = "div");
Output pow(const Scope& scope, const Output& a, double exponent, std::string_view name = "pow");

Output neg(const Scope& scope, const Output& x, std::string_view name = "neg");
Output abs(const Scope& scope, const Output& x, std::string_view name = "abs");
Output exp(const Scope& scope, const Output& x, std::string_view name = "exp");
Output log(const Scope& scope, const Output& x, std::string_view name = "log");
Output sqrt(const Scope& scope, const Output& x, std::string_view name = "sqrt");
Output rsqrt(const Scope& scope, const Output& x, std::string_view name = "rsqrt");
Output square(const Scope& scope, const Output& x, std::string_view name = "square");
Output sin(const Scope& scope, const Output& x, std::string_view name = "sin");
Output cos(const Scope& scope, const Output& x, std::string_view name = "cos");

// Multiplies matrices [m, k] and [k, n]. Also multiplies batches of any number of dimensions: [..., m, k] with the same
// [..., k, n], or with a single [k, n]. Otherwise like PyTorch's matmul.
Output matmul(const Scope& scope, const Output& a, const Output& b, std::string_view name = "matmul");
// bias + a @ b, for matrices.
Output addmm(const Scope& scope, const Output& bias, const Output& a, const Output& b, std::string_view name = "addmm");

// Reductions over the given dimensions, or over all if none is given. Negative numbers count from the end.
Output sum(const Scope& scope, const Output& x, std::vector<int64_t> dims = {}, bool keepdim = false,
           std::string_view name = "sum");
Output mean(const Scope& scope, const Output& x, std::vector<int64_t> dims = {}, bool keepdim = false,
            std::string_view name = "mean");
Output max(const Scope& scope, const Output& x, std::vector<int64_t> dims = {}, bool keepdim = false,
           std::string_view name = "max");
Output min(const Scope& scope, const Output& x, std::vector<int64_t> dims = {}, bool keepdim = false,
           std::string_view name = "min");
Output logsumexp(const Scope& scope, const Output& x, std::vector<int64_t> dims, bool keepdim = false,
                 std::string_view name = "logsumexp");
// The index of the largest element, int64.
Output argmax(const Scope& scope, const Output& x, int64_t dim = -1, bool keepdim = false,
              std::string_view name = "argmax");

// Element-wise comparisons, bool.
Output eq(const Scope& scope, const Output& a, const Output& b, std::string_view name = "eq");
Output ne(const Scope& scope, const Output& a, const Output& b, std::string_view name = "ne");
Output lt(const Scope& scope, const Output& a, const Output& b, std::string_view name = "lt");
Output le(const Scope& scope, const Output& a, const Output& b, std::string_view name = "le");
Output gt(const Scope& scope, const Output& a, const Output& b, std::string_view name = "gt");
Output ge(const Scope& scope, const Output& a, const Output& b, std::string_view name = "ge");
Output logical_not(const Scope& scope, const Output& x, std::string_view name = "logical_not");

Output cast(const Scope& scope, const Output& x, DType dtype, std::string_view name = "cast");

}  // namespace ops

// Arithmetic operators; the operations are added to the output's graph, outside all scopes.
Output operator+(const Output& a, const Output& b);
Output operator-(const Output& a, const Output& b);
Output operator*(const Output& a, const Output& b);
Output operator/(const Output& a, const Output& b);
Output operator-(const Output& a);
Output operator+(const Output& a, double b);
Output operator-(const Output& a, double b);
Output operator*(const Output& a, double b);
Output operator/(const Output& a, double b);
Output operator+(double a, const Output& b);
Output operator-(double a, const Output& b);
Output operator*(double a, const Output& b);
Output operator/(double a, const Output& b);

}  // namespace longhaul
