#pragma once

// Gives an optimizer's rule access to its operation's inputs, and runs it on variables: on entire ones, or on rows
// gathered from them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <mutex>

#include "longhaul/runtime/kernels/kernel.h"
#include "longhaul/runtime/kernels/update_loops.h"

namespace longhaul::optimizer_update {

// The numbers given to an operation, in order: its inputs except for the variables, which come first, and `count`
// inputs from `gradient` on.
class Numbers {
 public:
  Numbers(const KernelContext& context, int gradient, int count)
      : context_(context), gradient_(gradient), count_(count) {}

  int size() const { return context_.num_inputs() - num_variables() - count_; }
  int input(int i) const {
    return num_variables() + i < gradient_ ? num_variables() + i : num_variables() + i + count_;
  }
  double operator[](int i) const {
    const at::Tensor& tensor = context_.tensor(input(i));
    if (tensor.scalar_type() == at::kFloat && tensor.is_cpu()) return *tensor.data_ptr<float>();
    return tensor.item<double>();
  }
  bool flag(const std::string& name) const {
    const bool* attr = context_.op().find_attr<bool>(name);
    return attr != nullptr && *attr;
  }
  void check() const {
    for (int i = 0; i < size(); ++i) {
      if (context_.tensor(input(i)).numel() != 1) context_.refuse(fmt::format("input {} must be a scalar", input(i)));
    }
  }

 private:
  int num_variables() const { return static_cast<int>(context_.variables().size()); }

  const KernelContext& context_;
  const int gradient_, count_;
};

// A rule may have its own check, which returns the error in the numbers, if any.
template <typename Rule>
void check_numbers(const KernelContext& context, const Numbers& numbers) {
  numbers.check();
  if constexpr (requires { Rule::why_not(numbers); }) {
    if (const std::string why = Rule::why_not(numbers); !why.empty()) context.refuse(why);
  }
}

inline void check_slots(const KernelContext& context) {
  const Shape shape = context.variable(0).read().shape();
  for (int i = 1; i < static_cast<int>(context.variables().size()); ++i) {
    if (context.variable(i).read().shape() != shape)
      context.refuse(context.variable(i).name() + " does not have the same shape as " + context.variable(0).name());
  }
}

// The source and destination of a variable, or of a variable's slot, during an update; they may be the same.
struct Pair {
  const at::Tensor* in;
  at::Tensor* out;
  template <typename T>
  update_loops::State<T> state() const {
    return {in->data_ptr<T>(), out->data_ptr<T>()};
  }
};

// A rule (optimizer_rules.h) is constructed from the Numbers of an operation on Rule::kVariables variables.
// rule.plain(pairs, gradient) is its formula in libtorch's operators; some have rule.fused(pairs, count, gradient), a
// loop.
template <typename Rule>
using Pairs = std::array<Pair, Rule::kVariables>;

template <typename Rule>
concept HasLoop = requires(const Rule& rule, const Pairs<Rule>& pairs, const float* gradient) {
  rule.fused(pairs, int64_t{1}, gradient);
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

// Locks the operation's variables in the same order in all threads, and calls write with their pairs.
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

// The fused loops are for contiguous float and double on the CPU.
template <size_t kCount>
bool can_fuse(const std::array<Pair, kCount>& pairs, const at::Tensor& gradient) {
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.is_contiguous() && tensor.scalar_type() == gradient.scalar_type();
  };
  return (gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kDouble) && fits(gradient) &&
         std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) { return fits(*pair.in) && fits(*pair.out); });
}

// Makes the call with the sources and the gradient as float if the variable has 16 bits: libtorch lacks operators for
// these, and the formulas need the precision.
template <size_t kCount, typename Plain>
void call_widened(std::array<Pair, kCount> pairs, const at::Tensor& gradient, const Plain& plain) {
  const at::ScalarType type = pairs[0].in->scalar_type();
  if (type != at::kHalf && type != at::kBFloat16) return plain(pairs, gradient);
  std::array<at::Tensor, kCount> wide;
  for (size_t i = 0; i < kCount; ++i) {
    wide[i] = pairs[i].in->to(at::kFloat);
    pairs[i].in = &wide[i];
  }
  plain(pairs, gradient.to(at::kFloat));
}

// Runs the fused loop for the gradient's type, or the same formula in libtorch's operators.
template <typename Rule>
void update(const Rule& rule, const Pairs<Rule>& pairs, const at::Tensor& gradient) {
  if constexpr (HasLoop<Rule>) {
    if (can_fuse(pairs, gradient)) {
      if (gradient.scalar_type() == at::kFloat) return rule.fused(pairs, gradient.numel(), gradient.data_ptr<float>());
      return rule.fused(pairs, gradient.numel(), gradient.data_ptr<double>());
    }
  }
  call_widened(pairs, gradient, [&](const Pairs<Rule>& wide, const at::Tensor& g) { rule.plain(wide, g); });
}

}  // namespace longhaul::optimizer_update
