#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "longhaul/runtime/kernel.h"
#include "longhaul/runtime/kernels/update_loops.h"

namespace longhaul {
namespace {

using update_loops::State;

double scalar(const KernelContext& context, int input) {
  const at::Tensor& tensor = context.tensor(input);
  if (tensor.scalar_type() == at::kFloat && tensor.is_cpu()) return *tensor.data_ptr<float>();
  return tensor.item<double>();
}

// Everything that could be wrong: `gradient` is the number of the gradient's input; all inputs between it and the
// variables are scalars.
template <int kGradient>
void check_apply(const KernelContext& context) {
  const Value variable = context.variable(0).read();
  for (int i = 1; i < static_cast<int>(context.variables().size()); ++i) {
    const Value slot = context.variable(i).read();
    if (slot.shape() != variable.shape())
      context.refuse(context.variable(i).name() + " has another shape than " + context.variable(0).name());
  }
  const at::Tensor& gradient = context.tensor(kGradient);
  if (gradient.sizes() != variable.tensor.sizes() || gradient.scalar_type() != variable.tensor.scalar_type()) {
    context.refuse(fmt::format("{} is {}, its gradient is {}", context.variable(0).name(), variable.shape().to_string(),
                               shape_of(gradient).to_string()));
  }
  for (int i = static_cast<int>(context.variables().size()); i < context.num_inputs(); ++i) {
    if (i != kGradient && context.tensor(i).numel() != 1) context.refuse(fmt::format("input {} must be a scalar", i));
  }
}

// The source and destination of a variable, or of a variable's slot, during an update.
struct Pair {
  const at::Tensor* in;
  at::Tensor* out;
  template <typename T>
  State<T> state() const {
    return {in->data_ptr<T>(), out->data_ptr<T>()};
  }
};

// Returns the new value of variable kIndex.
template <size_t kIndex, size_t kCount, typename Write>
at::Tensor update_nested(KernelContext& context, std::array<Pair, kCount>& pairs, const Write& write) {
  return context.variable(kIndex).update_locked([&](const at::Tensor& source, at::Tensor& destination) {
    pairs[kIndex] = {&source, &destination};
    if constexpr (kIndex + 1 == kCount) {
      write(pairs);
    } else {
      update_nested<kIndex + 1>(context, pairs, write);
    }
  });
}

// Locks the operation's variables in an order that is the same for all threads, and calls write with their pairs.
template <size_t kCount, typename Write>
void update_together(KernelContext& context, const Write& write) {
  std::array<std::mutex*, kCount> mutexes;
  for (size_t i = 0; i < kCount; ++i) mutexes[i] = &context.variable(static_cast<int>(i)).mutex();
  std::sort(mutexes.begin(), mutexes.end());
  std::array<std::unique_lock<std::mutex>, kCount> locks;
  for (size_t i = 0; i < kCount; ++i) locks[i] = std::unique_lock<std::mutex>(*mutexes[i]);
  std::array<Pair, kCount> pairs;
  const at::Tensor updated = update_nested<0>(context, pairs, write);
  if (context.output_needed(0)) context.set_output(0, Value(updated));
}

// The fused loops are for contiguous float and double on the processor.
template <size_t kCount>
bool can_fuse(const std::array<Pair, kCount>& pairs, const at::Tensor& gradient) {
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.is_contiguous() && tensor.scalar_type() == gradient.scalar_type();
  };
  return (gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kDouble) && fits(gradient) &&
         std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) { return fits(*pair.in) && fits(*pair.out); });
}

// Calls with the sources and the gradient as float if they are of 16 bits: libtorch lacks operators for these, and the
// formulas need the digits.
template <size_t kCount, typename Plain>
void call_widened(std::array<Pair, kCount> pairs, const at::Tensor& gradient, const Plain& plain) {
  if (gradient.scalar_type() != at::kHalf && gradient.scalar_type() != at::kBFloat16) return plain(pairs, gradient);
  std::array<at::Tensor, kCount> wide;
  for (size_t i = 0; i < kCount; ++i) {
    wide[i] = pairs[i].in->to(at::kFloat);
    pairs[i].in = &wide[i];
  }
  plain(pairs, gradient.to(at::kFloat));
}

// Runs the fused loop for the gradient's type, or the same formula in libtorch's operators.
template <size_t kCount, typename Fused, typename Plain>
void apply(KernelContext& context, int gradient_input, const Fused& fused, const Plain& plain) {
  const at::Tensor gradient = context.tensor(gradient_input).contiguous();
  update_together<kCount>(context, [&](const std::array<Pair, kCount>& pairs) {
    if (!can_fuse(pairs, gradient)) {
      call_widened(pairs, gradient, plain);
    } else if (gradient.scalar_type() == at::kFloat) {
      fused(pairs, gradient.numel(), gradient.data_ptr<float>());
    } else {
      fused(pairs, gradient.numel(), gradient.data_ptr<double>());
    }
  });
}

// Updates that run in libtorch's operators always.
template <size_t kCount, typename Plain>
void apply_plain(KernelContext& context, int gradient_input, const Plain& plain) {
  const at::Tensor gradient = context.tensor(gradient_input);
  update_together<kCount>(context,
                          [&](const std::array<Pair, kCount>& pairs) { call_widened(pairs, gradient, plain); });
}

template <typename Pointer>
using Element = std::remove_const_t<std::remove_pointer_t<Pointer>>;

void gradient_descent(KernelContext& context) {
  const double rate = scalar(context, 1);
  apply<1>(
      context, 2,
      [&](const auto& pairs, int64_t count, auto* gradient) {
        using T = Element<decltype(gradient)>;
        update_loops::gradient_descent<T>(count, pairs[0].template state<T>(), gradient, static_cast<T>(rate));
      },
      [&](const auto& pairs, const at::Tensor& gradient) { pairs[0].out->copy_(*pairs[0].in - gradient * rate); });
}

void momentum(KernelContext& context) {
  const double rate = scalar(context, 2), momentum = scalar(context, 4);
  const bool* attr = context.op().find_attr<bool>("use_nesterov");
  const bool nesterov = attr != nullptr && *attr;
  apply<2>(
      context, 3,
      [&](const auto& pairs, int64_t count, auto* gradient) {
        using T = Element<decltype(gradient)>;
        update_loops::momentum<T>(count, pairs[0].template state<T>(), pairs[1].template state<T>(), gradient,
                                  static_cast<T>(rate), static_cast<T>(momentum), nesterov);
      },
      [&](const auto& pairs, const at::Tensor& gradient) {
        const at::Tensor sum = *pairs[1].in * momentum + gradient;
        pairs[0].out->copy_(*pairs[0].in - (nesterov ? gradient + sum * momentum : sum) * rate);
        pairs[1].out->copy_(sum);
      });
}

void adam(KernelContext& context) {
  const double beta1 = scalar(context, 6), beta2 = scalar(context, 7), epsilon = scalar(context, 8);
  const double rate = scalar(context, 5) * std::sqrt(1 - scalar(context, 4)) / (1 - scalar(context, 3));
  apply<3>(
      context, 9,
      [&](const auto& pairs, int64_t count, auto* gradient) {
        using T = Element<decltype(gradient)>;
        update_loops::adam<T>(count, pairs[0].template state<T>(), pairs[1].template state<T>(),
                              pairs[2].template state<T>(), gradient, static_cast<T>(rate), static_cast<T>(beta1),
                              static_cast<T>(beta2), static_cast<T>(epsilon));
      },
      [&](const auto& pairs, const at::Tensor& gradient) {
        const at::Tensor m = *pairs[1].in + (gradient - *pairs[1].in) * (1 - beta1);
        const at::Tensor v = *pairs[2].in + (gradient * gradient - *pairs[2].in) * (1 - beta2);
        pairs[0].out->copy_(*pairs[0].in - m * rate / (v.sqrt() + epsilon));
        pairs[1].out->copy_(m);
        pairs[2].out->copy_(v);
      });
}

void adagrad(KernelContext& context) {
  const double rate = scalar(context, 2);
  apply<2>(
      context, 3,
      [&](const auto& pairs, int64_t count, auto* gradient) {
        using T = Element<decltype(gradient)>;
        update_loops::adagrad<T>(count, pairs[0].template state<T>(), pairs[1].template state<T>(), gradient,
                                 static_cast<T>(rate));
      },
      [&](const auto& pairs, const at::Tensor& gradient) {
        const at::Tensor sum = *pairs[1].in + gradient * gradient;
        pairs[0].out->copy_(*pairs[0].in - gradient * rate / sum.sqrt());
        pairs[1].out->copy_(sum);
      });
}

void rmsprop(KernelContext& context) {
  const double rate = scalar(context, 3), rho = scalar(context, 4), momentum = scalar(context, 5),
               epsilon = scalar(context, 6);
  apply<3>(
      context, 7,
      [&](const auto& pairs, int64_t count, auto* gradient) {
        using T = Element<decltype(gradient)>;
        update_loops::rmsprop<T>(count, pairs[0].template state<T>(), pairs[1].template state<T>(),
                                 pairs[2].template state<T>(), gradient, static_cast<T>(rate), static_cast<T>(rho),
                                 static_cast<T>(momentum), static_cast<T>(epsilon));
      },
      [&](const auto& pairs, const at::Tensor& gradient) {
        const at::Tensor square = *pairs[1].in + (gradient * gradient - *pairs[1].in) * (1 - rho);
        const at::Tensor moment = *pairs[2].in * momentum + gradient * rate / (square + epsilon).sqrt();
        pairs[0].out->copy_(*pairs[0].in - moment);
        pairs[1].out->copy_(square);
        pairs[2].out->copy_(moment);
      });
}

void centered_rmsprop(KernelContext& context) {
  const double rate = scalar(context, 4), rho = scalar(context, 5), momentum = scalar(context, 6),
               epsilon = scalar(context, 7);
  apply_plain<4>(context, 8, [&](const auto& pairs, const at::Tensor& gradient) {
    const at::Tensor mean = *pairs[1].in + (gradient - *pairs[1].in) * (1 - rho);
    const at::Tensor square = *pairs[2].in + (gradient * gradient - *pairs[2].in) * (1 - rho);
    const at::Tensor moment = *pairs[3].in * momentum + gradient * rate / (square - mean * mean + epsilon).sqrt();
    pairs[0].out->copy_(*pairs[0].in - moment);
    pairs[1].out->copy_(mean);
    pairs[2].out->copy_(square);
    pairs[3].out->copy_(moment);
  });
}

void adadelta(KernelContext& context) {
  const double rate = scalar(context, 3), rho = scalar(context, 4), epsilon = scalar(context, 5);
  apply_plain<3>(context, 6, [&](const auto& pairs, const at::Tensor& gradient) {
    const at::Tensor sum = *pairs[1].in * rho + gradient * gradient * (1 - rho);
    const at::Tensor change = (*pairs[2].in + epsilon).sqrt() * (sum + epsilon).rsqrt() * gradient;
    const at::Tensor changes = *pairs[2].in * rho + change * change * (1 - rho);
    pairs[0].out->copy_(*pairs[0].in - change * rate);
    pairs[1].out->copy_(sum);
    pairs[2].out->copy_(changes);
  });
}

// ApplyFtrl, and ApplyFtrlV2, which has the shrinkage before the power.
void ftrl(KernelContext& context) {
  const bool shrinks = context.num_inputs() == 9;
  const double rate = scalar(context, 4), l1 = scalar(context, 5), l2 = scalar(context, 6),
               shrinkage = shrinks ? scalar(context, 7) : 0, power = scalar(context, shrinks ? 8 : 7);
  apply_plain<3>(context, 3, [&](const auto& pairs, const at::Tensor& gradient) {
    const at::Tensor &w = *pairs[0].in, &before = *pairs[1].in;
    const at::Tensor sum = before + gradient * gradient;
    const at::Tensor slowness = sum.pow(-power) / rate;
    const at::Tensor linear =
        *pairs[2].in + gradient + w * (2 * shrinkage) - (slowness - before.pow(-power) / rate) * w;
    const at::Tensor beyond = linear.clamp(-l1, l1) - linear;
    pairs[0].out->copy_(at::where(linear.abs() > l1, beyond / (slowness + 2 * l2), at::zeros_like(linear)));
    pairs[1].out->copy_(sum);
    pairs[2].out->copy_(linear);
  });
}

}  // namespace

KernelTable optimizer_kernels() {
  return {
      {"ApplyGradientDescent", {gradient_descent, check_apply<2>}},
      {"ApplyMomentum", {momentum, check_apply<3>}},
      {"ApplyAdam", {adam, check_apply<9>}},
      {"ApplyAdagrad", {adagrad, check_apply<3>}},
      {"ApplyRMSProp", {rmsprop, check_apply<7>}},
      {"ApplyCenteredRMSProp", {centered_rmsprop, check_apply<8>}},
      {"ApplyAdadelta", {adadelta, check_apply<6>}},
      {"ApplyFtrl", {ftrl, check_apply<3>}},
      {"ApplyFtrlV2", {ftrl, check_apply<3>}},
  };
}

}  // namespace longhaul
