#include <fmt/format.h>

#include "longhaul/runtime/kernels/kernel.h"
#include "longhaul/runtime/kernels/optimizer_rules.h"
#include "longhaul/runtime/kernels/optimizer_update.h"

namespace longhaul {
namespace {

using namespace optimizer_rules;

// Everything that could be wrong: `gradient` is the number of the gradient's input; all others behind the variables are
// scalars.
template <typename Rule, int kGradient>
void check_apply(const KernelContext& context) {
  optimizer_update::check_slots(context);
  const Value variable = context.variable(0).read();
  const at::Tensor& gradient = context.tensor(kGradient);
  if (gradient.sizes() != variable.tensor.sizes() || gradient.scalar_type() != variable.tensor.scalar_type()) {
    context.refuse(fmt::format("{} is {}, but its gradient is {}", context.variable(0).name(),
                               variable.shape().to_string(), shape_of(gradient).to_string()));
  }
  optimizer_update::check_numbers<Rule>(context, Numbers(context, kGradient, 1));
}

template <typename Rule, int kGradient>
void apply(KernelContext& context) {
  const Rule rule(Numbers(context, kGradient, 1));
  const at::Tensor gradient = context.tensor(kGradient).contiguous();
  optimizer_update::update_together<Rule::kVariables>(
      context, [&](const auto& pairs) { optimizer_update::update(rule, pairs, gradient); });
}

template <typename Rule, int kGradient>
constexpr Kernel kernel_of() {
  return {apply<Rule, kGradient>, check_apply<Rule, kGradient>, KernelPlace::kOfVariable, kGradient};
}

}  // namespace

KernelTable optimizer_kernels() {
  return {
      {"ApplyGradientDescent", kernel_of<GradientDescent, 2>()},
      {"ApplyMomentum", kernel_of<Momentum, 3>()},
      {"ApplyAdam", kernel_of<Adam, 9>()},
      {"ApplyAdagrad", kernel_of<Adagrad, 3>()},
      {"ApplyRMSProp", kernel_of<RMSProp, 7>()},
      {"ApplyCenteredRMSProp", kernel_of<CenteredRMSProp, 8>()},
      {"ApplyAdadelta", kernel_of<Adadelta, 6>()},
      {"ApplyFtrl", kernel_of<Ftrl, 3>()},
      {"ApplyFtrlV2", kernel_of<Ftrl, 3>()},
  };
}

}  // namespace longhaul
