#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "longhaul/ops/training/hyperparameter.h"

namespace longhaul::ops {

// Learning rates that depend on the step counter. Each is a scalar float for an optimizer. Only the step needs to be
// saved:
//
//   const Variable step = ops::global_step(root);
//   const Output rate = ops::linear_warmup(root, ops::cosine_decay(root, 0.1, step, 10'000), step, 500);
//   MomentumOptimizer(rate, 0.9).minimize(loss, step);
//
// A step uses the rate for the count before it, so the first step uses the rate of step 0. The formulas are those of
// TensorFlow's tf.train, unless a line names another source. In all of them t = global_step / decay_steps, computed in
// double. InvalidArgumentError: a number of steps is not above 0, a number is not finite, a rate becomes 0 as a float,
// or another argument is out of its range.

// learning_rate * decay_rate ^ t; with `staircase` t is rounded down. decay_rate > 0.
Output exponential_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                         double decay_rate, bool staircase = false, std::string_view name = "ExponentialDecay");

// values[0] up to and including step boundaries[0], values[1] from there to boundaries[1], ..., the last value after
// all boundaries. The boundaries must increase, and there must be one fewer than values.
Output piecewise_constant(const Scope& scope, const Output& global_step, const std::vector<int64_t>& boundaries,
                          const std::vector<double>& values, std::string_view name = "PiecewiseConstant");

// (learning_rate - end_learning_rate) * (1 - t) ^ power + end_learning_rate, t at most 1. With `cycle`, t is divided by
// itself rounded up (by 1 at step 0): each time the rate reaches the end, it rises again and is back at the end
// decay_steps later. The k-th time it follows a decay from the start over k * decay_steps. power > 0.
Output polynomial_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                        double end_learning_rate = 0.0001, double power = 1, bool cycle = false,
                        std::string_view name = "PolynomialDecay");

// learning_rate / (1 + decay_rate * t); with `staircase` t is rounded down. decay_rate >= 0.
Output inverse_time_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                          double decay_rate, bool staircase = false, std::string_view name = "InverseTimeDecay");

// learning_rate * exp(-decay_rate * t); with `staircase` t is rounded down.
Output natural_exp_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                         double decay_rate, bool staircase = false, std::string_view name = "NaturalExpDecay");

// learning_rate * ((1 - alpha) * (1 + cos(pi * t)) / 2 + alpha), t at most 1.
Output cosine_decay(const Scope& scope, double learning_rate, const Output& global_step, int64_t decay_steps,
                    double alpha = 0, std::string_view name = "CosineDecay");

// Warm restarts (SGDR: Loshchilov and Hutter, arXiv 1608.03983): the i-th descent (i from 0) takes first_decay_steps *
// t_mul ^ i steps and follows
//   learning_rate * ((1 - alpha) * m_mul ^ i * (1 + cos(pi * t)) / 2 + alpha)
// where t is the completed fraction of the descent. t_mul >= 1.
Output cosine_decay_restarts(const Scope& scope, double learning_rate, const Output& global_step,
                             int64_t first_decay_steps, double t_mul = 2, double m_mul = 1, double alpha = 0,
                             std::string_view name = "SGDRDecay");

// The gradual warm-up of Goyal et al., arXiv 1706.02677, section 2.2, in front of another schedule or of a number:
// learning_rate * (start_factor + (1 - start_factor) * min(global_step / warmup_steps, 1)). With a start_factor of 0,
// the first step changes nothing; Ftrl refuses this because it divides by the rate. 0 <= start_factor <= 1.
Output linear_warmup(const Scope& scope, const Hyperparameter& learning_rate, const Output& global_step,
                     int64_t warmup_steps, double start_factor = 0, std::string_view name = "LinearWarmup");

}  // namespace longhaul::ops
