#pragma once

// The optimizers' formulas, each written once for operations on entire variables (ApplyMomentum) and on rows of them
// (SparseApplyMomentum). They are those of TensorFlow's training_ops.cc, which are the same for both kinds.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "longhaul/runtime/kernels/optimizer_update.h"
#include "longhaul/runtime/kernels/update_loops.h"

namespace longhaul::optimizer_rules {

using optimizer_update::Numbers;
using optimizer_update::Pair;

// ScatterSub: the change is given.
struct Subtraction {
  static constexpr size_t kVariables = 1;
  explicit Subtraction(const Numbers&) {}

  void plain(const std::array<Pair, 1>& pairs, const at::Tensor& change) const {
    pairs[0].out->copy_(*pairs[0].in - change);
  }
};

struct GradientDescent {
  static constexpr size_t kVariables = 1;
  explicit GradientDescent(const Numbers& numbers) : rate(numbers[0]) {}

  template <typename T>
  void fused(const std::array<Pair, 1>& pairs, int64_t count, const T* gradient) const {
    update_loops::gradient_descent<T>(count, pairs[0].state<T>(), gradient, static_cast<T>(rate));
  }
  void plain(const std::array<Pair, 1>& pairs, const at::Tensor& gradient) const {
    pairs[0].out->copy_(*pairs[0].in - gradient * rate);
  }

  const double rate;
};

struct Momentum {
  static constexpr size_t kVariables = 2;
  explicit Momentum(const Numbers& numbers)
      : rate(numbers[0]), momentum(numbers[1]), nesterov(numbers.flag("use_nesterov")) {}

  template <typename T>
  void fused(const std::array<Pair, 2>& pairs, int64_t count, const T* gradient) const {
    update_loops::momentum<T>(count, pairs[0].state<T>(), pairs[1].state<T>(), gradient, static_cast<T>(rate),
                              static_cast<T>(momentum), nesterov);
  }
  void plain(const std::array<Pair, 2>& pairs, const at::Tensor& gradient) const {
    const at::Tensor sum = *pairs[1].in * momentum + gradient;
    pairs[0].out->copy_(*pairs[0].in - (nesterov ? gradient + sum * momentum : sum) * rate);
    pairs[1].out->copy_(sum);
  }

  const double rate, momentum;
  const bool nesterov;
};

struct Adam {
  static constexpr size_t kVariables = 3;
  explicit Adam(const Numbers& numbers)
      : rate(numbers[2] * std::sqrt(1 - numbers[1]) / (1 - numbers[0])),
        beta1(numbers[3]),
        beta2(numbers[4]),
        epsilon(numbers[5]) {}

  template <typename T>
  void fused(const std::array<Pair, 3>& pairs, int64_t count, const T* gradient) const {
    update_loops::adam<T>(count, pairs[0].state<T>(), pairs[1].state<T>(), pairs[2].state<T>(), gradient,
                          static_cast<T>(rate), static_cast<T>(beta1), static_cast<T>(beta2), static_cast<T>(epsilon));
  }
  void plain(const std::array<Pair, 3>& pairs, const at::Tensor& gradient) const {
    const at::Tensor m = *pairs[1].in + (gradient - *pairs[1].in) * (1 - beta1);
    const at::Tensor v = *pairs[2].in + (gradient * gradient - *pairs[2].in) * (1 - beta2);
    pairs[0].out->copy_(*pairs[0].in - m * rate / (v.sqrt() + epsilon));
    pairs[1].out->copy_(m);
    pairs[2].out->copy_(v);
  }

  const double rate, beta1, beta2, epsilon;
};

struct Adagrad {
  static constexpr size_t kVariables = 2;
  explicit Adagrad(const Numbers& numbers) : rate(numbers[0]) {}

  template <typename T>
  void fused(const std::array<Pair, 2>& pairs, int64_t count, const T* gradient) const {
    update_loops::adagrad<T>(count, pairs[0].state<T>(), pairs[1].state<T>(), gradient, static_cast<T>(rate));
  }
  void plain(const std::array<Pair, 2>& pairs, const at::Tensor& gradient) const {
    const at::Tensor sum = *pairs[1].in + gradient * gradient;
    pairs[0].out->copy_(*pairs[0].in - gradient * rate / sum.sqrt());
    pairs[1].out->copy_(sum);
  }

  const double rate;
};

struct RMSProp {
  static constexpr size_t kVariables = 3;
  explicit RMSProp(const Numbers& numbers)
      : rate(numbers[0]), rho(numbers[1]), momentum(numbers[2]), epsilon(numbers[3]) {}

  template <typename T>
  void fused(const std::array<Pair, 3>& pairs, int64_t count, const T* gradient) const {
    update_loops::rmsprop<T>(count, pairs[0].state<T>(), pairs[1].state<T>(), pairs[2].state<T>(), gradient,
                             static_cast<T>(rate), static_cast<T>(rho), static_cast<T>(momentum),
                             static_cast<T>(epsilon));
  }
  void plain(const std::array<Pair, 3>& pairs, const at::Tensor& gradient) const {
    const at::Tensor square = *pairs[1].in + (gradient * gradient - *pairs[1].in) * (1 - rho);
    const at::Tensor moment = *pairs[2].in * momentum + gradient * rate / (square + epsilon).sqrt();
    pairs[0].out->copy_(*pairs[0].in - moment);
    pairs[1].out->copy_(square);
    pairs[2].out->copy_(moment);
  }

  const double rate, rho, momentum, epsilon;
};

struct CenteredRMSProp {
  static constexpr size_t kVariables = 4;
  explicit CenteredRMSProp(const Numbers& numbers)
      : rate(numbers[0]), rho(numbers[1]), momentum(numbers[2]), epsilon(numbers[3]) {}

  void plain(const std::array<Pair, 4>& pairs, const at::Tensor& gradient) const {
    const at::Tensor mean = *pairs[1].in + (gradient - *pairs[1].in) * (1 - rho);
    const at::Tensor square = *pairs[2].in + (gradient * gradient - *pairs[2].in) * (1 - rho);
    const at::Tensor moment = *pairs[3].in * momentum + gradient * rate / (square - mean * mean + epsilon).sqrt();
    pairs[0].out->copy_(*pairs[0].in - moment);
    pairs[1].out->copy_(mean);
    pairs[2].out->copy_(square);
    pairs[3].out->copy_(moment);
  }

  const double rate, rho, momentum, epsilon;
};

struct Adadelta {
  static constexpr size_t kVariables = 3;
  explicit Adadelta(const Numbers& numbers) : rate(numbers[0]), rho(numbers[1]), epsilon(numbers[2]) {}

  void plain(const std::array<Pair, 3>& pairs, const at::Tensor& gradient) const {
    const at::Tensor sum = *pairs[1].in * rho + gradient * gradient * (1 - rho);
    const at::Tensor change = (*pairs[2].in + epsilon).sqrt() * (sum + epsilon).rsqrt() * gradient;
    const at::Tensor changes = *pairs[2].in * rho + change * change * (1 - rho);
    pairs[0].out->copy_(*pairs[0].in - change * rate);
    pairs[1].out->copy_(sum);
    pairs[2].out->copy_(changes);
  }

  const double rate, rho, epsilon;
};

// Ftrl, and FtrlV2, which has the shrinkage before the power. The weight is 0 if |z| is within l1, or if the divisor is
// 0, because the squares of all gradients were 0 or negligible; TensorFlow divides there, and gets NaN or infinity. If
// z is NaN, so is the weight: with TensorFlow's 0 the loss would stay finite, and the error would go unnoticed.
struct Ftrl {
  static constexpr size_t kVariables = 3;
  explicit Ftrl(const Numbers& numbers)
      : rate(numbers[0]),
        l1(numbers[1]),
        l2(numbers[2]),
        shrinkage(numbers.size() == 5 ? numbers[3] : 0),
        power(numbers[numbers.size() - 1]) {}

  static std::string why_not(const Numbers& numbers) {
    const double rate = numbers[0];
    if (static_cast<float>(rate) > 0 && std::isfinite(rate)) return "";
    return fmt::format(
        "the learning rate must be above 0 and finite, not {}, because Ftrl divides by it. A warm-up needs a "
        "start_factor above 0, and a decay needs an end above 0",
        rate);
  }

  void plain(const std::array<Pair, 3>& pairs, const at::Tensor& gradient) const {
    const at::Tensor &w = *pairs[0].in, &before = *pairs[1].in;
    const at::Tensor sum = before + gradient * gradient;
    const at::Tensor slowness = sum.pow(-power) / rate;
    const at::Tensor linear =
        *pairs[2].in + gradient + w * (2 * shrinkage) - (slowness - before.pow(-power) / rate) * w;
    const at::Tensor beyond = linear.clamp(-l1, l1) - linear;
    const at::Tensor divisor = slowness + 2 * l2;
    const at::Tensor is_zero = (linear.abs() <= l1).logical_or(divisor == 0);
    pairs[0].out->copy_(at::where(is_zero, at::zeros_like(linear), beyond / divisor));
    pairs[1].out->copy_(sum);
    pairs[2].out->copy_(linear);
  }

  const double rate, l1, l2, shrinkage, power;
};

}  // namespace longhaul::optimizer_rules
