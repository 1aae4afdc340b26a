#include "longhaul/ops/training/learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/math_ops.h"

namespace longhaul::ops {
namespace {

Output floor(const Scope& scope, const Output& x) {
  return aten(scope, "aten::floor", "floor", {{"self", x}}).output();
}

Output ceil(const Scope& scope, const Output& x) {
  return aten(scope, "aten::ceil", "ceil", {{"self", x}}).output();
}

Output at_most_one(const Scope& scope, const Output& x) {
  return aten(scope, "aten::clamp", "clamp", {{"self", x}, {"max", 1.0}}).output();
}

Output at_least_one(const Scope& scope, const Output& x) {
  return aten(scope, "aten::clamp", "clamp", {{"self", x}, {"min", 1.0}}).output();
}

Output power_of(const Scope& scope, double base, const Output& exponent) {
  return aten(scope, "aten::pow.Scalar", "pow", {{"self", base}, {"exponent", exponent}}).output();
}

Output as_rate(const Scope& scope, const Output& value) {
  return cast(scope, value, kFloat, "learning_rate");
}

// How much of `steps` is done: 1 at that step, and it goes on.
Output progress(const Scope& scope, const Output& global_step, int64_t steps) {
  return div(scope, cast(scope, global_step, kDouble, "step"), static_cast<double>(steps), "progress");
}

void check_steps(const char* function, const char* argument, int64_t steps) {
  check_argument(steps > 0, function, argument, "above 0", static_cast<double>(steps));
}

void check_finite(const char* function, const char* argument, double value) {
  check_argument(std::isfinite(value), function, argument, "finite", value);
}

// Of the decays that may go down in stairs.
Output stair_progress(const Scope& scope, const Output& global_step, int64_t decay_steps, bool staircase) {
  const Output done = progress(scope, global_step, decay_steps);
  return staircase ? floor(scope, done) : done;
}

// (1 + cos(pi * done)) / 2: from 1 to 0.
Output half_wave(const Scope& scope, const Output& done) {
  return add(scope, mul(scope, cos(scope, mul(scope, done, std::numbers::pi)), 0.5), 0.5);
}

// `from` where the part is 1, `to` where it is 0.
Output between(const Scope& scope, const Output& part, double from, double to) {
  const Output distance = mul(scope, part, from - to);
  return to == 0 ? distance : add(scope, distance, to);
}

struct Cycle {
  Output index, done;
};

// Cycle i begins at (t_mul^i - 1) / (t_mul - 1), in units of the first one, and is t_mul^i long.
Cycle geometric_cycle(const Scope& scope, const Output& done, double t_mul) {
  constexpr double kRoundingOfLogarithms = 1e-9;
  const Output length = add(scope, mul(scope, done, t_mul - 1), 1);
  const Output cycles = div(scope, log(scope, length), std::log(t_mul));
  const Output index = floor(scope, add(scope, cycles, kRoundingOfLogarithms));
  const Output unit = power_of(scope, t_mul, index);
  const Output begin = div(scope, sub(scope, unit, 1), t_mul - 1);
  return {index, div(scope, sub(scope, done, begin), unit)};
}

Cycle cycle_of(const Scope& scope, const Output& done, double t_mul) {
  if (t_mul > 1) return geometric_cycle(scope, done, t_mul);
  const Output index = floor(scope, done);
  return {index, sub(scope, done, index)};
}

}  // namespace

Output exponential_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                         double decay_rate, bool staircase, std::string_view name) {
  check_steps("exponential_decay", "decay_steps", decay_steps);
  check_float("exponential_decay", "learning_rate", learning_rate);
  check_finite("exponential_decay", "decay_rate", decay_rate);
  check_argument(decay_rate > 0, "exponential_decay", "decay_rate", "above 0", decay_rate);
  const Scope inner = scope.sub(name);
  const Output done = stair_progress(inner, global_step, decay_steps, staircase);
  return as_rate(inner, mul(inner, power_of(inner, decay_rate, done), learning_rate));
}

Output piecewise_constant(const Scope& scope, const Output& global_step, const std::vector<int64_t>& boundaries,
                          const std::vector<double>& values, std::string_view name) {
  if (boundaries.size() + 1 != values.size()) {
    throw InvalidArgumentError(
        fmt::format("piecewise_constant: the length of boundaries should be 1 less than the length of values, but the "
                    "lengths are {} and {}",
                    boundaries.size(), values.size()));
  }
  const auto wrong = std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>());
  if (wrong != boundaries.end()) {
    throw InvalidArgumentError(
        fmt::format("piecewise_constant: the boundaries must increase, but {} comes after {}", wrong[1], wrong[0]));
  }
  for (const double value : values) check_float("piecewise_constant", "values", value);
  const Scope inner = scope.sub(name);
  const Output edges = constant(inner, Tensor::of(boundaries), "boundaries");
  const Output which =
      aten(inner, "aten::bucketize.Tensor", "which", {{"self", global_step}, {"boundaries", edges}}).output();
  const Output rates = constant(inner, Tensor::of(std::vector<float>(values.begin(), values.end())), "values");
  return aten(inner, "aten::take", "learning_rate", {{"self", rates}, {"index", which}}).output();
}

Output polynomial_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                        double end_learning_rate, double power, bool cycle, std::string_view name) {
  check_steps("polynomial_decay", "decay_steps", decay_steps);
  check_float("polynomial_decay", "learning_rate", learning_rate);
  check_float("polynomial_decay", "end_learning_rate", end_learning_rate);
  check_finite("polynomial_decay", "power", power);
  check_argument(power > 0, "polynomial_decay", "power", "above 0", power);
  const Scope inner = scope.sub(name);
  const Output done = progress(inner, global_step, decay_steps);
  const Output part = cycle ? div(inner, done, at_least_one(inner, ceil(inner, done))) : at_most_one(inner, done);
  const Output left = pow(inner, sub(inner, 1, part), power);
  return as_rate(inner, between(inner, left, learning_rate, end_learning_rate));
}

Output inverse_time_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                          double decay_rate, bool staircase, std::string_view name) {
  check_steps("inverse_time_decay", "decay_steps", decay_steps);
  check_float("inverse_time_decay", "learning_rate", learning_rate);
  check_finite("inverse_time_decay", "decay_rate", decay_rate);
  check_argument(decay_rate >= 0, "inverse_time_decay", "decay_rate", "0 or above", decay_rate);
  const Scope inner = scope.sub(name);
  const Output done = stair_progress(inner, global_step, decay_steps, staircase);
  return as_rate(inner, div(inner, learning_rate, add(inner, mul(inner, done, decay_rate), 1)));
}

Output natural_exp_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                         double decay_rate, bool staircase, std::string_view name) {
  check_steps("natural_exp_decay", "decay_steps", decay_steps);
  check_float("natural_exp_decay", "learning_rate", learning_rate);
  check_finite("natural_exp_decay", "decay_rate", decay_rate);
  const Scope inner = scope.sub(name);
  const Output done = stair_progress(inner, global_step, decay_steps, staircase);
  return as_rate(inner, mul(inner, exp(inner, mul(inner, done, -decay_rate)), learning_rate));
}

Output cosine_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                    double alpha, std::string_view name) {
  check_steps("cosine_decay", "decay_steps", decay_steps);
  check_float("cosine_decay", "learning_rate", learning_rate);
  check_finite("cosine_decay", "alpha", alpha);
  const Scope inner = scope.sub(name);
  const Output done = at_most_one(inner, progress(inner, global_step, decay_steps));
  return as_rate(inner, between(inner, half_wave(inner, done), learning_rate, learning_rate * alpha));
}

Output cosine_decay_restarts(const Scope& scope, double learning_rate, const Output& global_step,
                             int64_t first_decay_steps, double t_mul, double m_mul, double alpha,
                             std::string_view name) {
  check_steps("cosine_decay_restarts", "first_decay_steps", first_decay_steps);
  check_float("cosine_decay_restarts", "learning_rate", learning_rate);
  check_finite("cosine_decay_restarts", "t_mul", t_mul);
  check_finite("cosine_decay_restarts", "m_mul", m_mul);
  check_finite("cosine_decay_restarts", "alpha", alpha);
  check_argument(t_mul >= 1, "cosine_decay_restarts", "t_mul", "1 or above", t_mul);
  const Scope inner = scope.sub(name);
  const Cycle cycle = cycle_of(inner, progress(inner, global_step, first_decay_steps), t_mul);
  const Output wave = mul(inner, half_wave(inner, cycle.done), power_of(inner, m_mul, cycle.index));
  return as_rate(inner, between(inner, wave, learning_rate, learning_rate * alpha));
}

Output linear_warmup(const Scope& scope, const Hyperparameter& learning_rate, const Output& global_step,
                     int64_t warmup_steps, double start_factor, std::string_view name) {
  check_steps("linear_warmup", "warmup_steps", warmup_steps);
  check_argument(start_factor >= 0 && start_factor <= 1, "linear_warmup", "start_factor", "between 0 and 1",
                 start_factor);
  if (const double* number = learning_rate.number()) check_float("linear_warmup", "learning_rate", *number);
  check_scalar("linear_warmup", "learning_rate", learning_rate);
  const Scope inner = scope.sub(name);
  const Output factor = between(inner, at_most_one(inner, progress(inner, global_step, warmup_steps)), 1, start_factor);
  return as_rate(inner, mul(inner, factor, learning_rate.as_tensor(inner, kDouble, "target")));
}

}  // namespace longhaul::ops
