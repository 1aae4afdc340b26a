#include "longhaul/binding/loss_scale.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr int64_t kSkippedInARow = 25;  // the initial scale is 1 after 17

void check(bool holds, const char* name, double value, const char* wanted) {
  if (!holds) throw InvalidArgumentError(fmt::format("LossScaleOptions::{} is {}; it must be {}", name, value, wanted));
}

// Of a sparse gradient, those of its rows.
at::Tensor values_of(at::Tensor& gradient) {
  if (gradient.layout() != at::kSparse) return gradient;
  gradient = gradient.coalesce();
  return gradient._values();
}

}  // namespace

LossScale::LossScale(const LossScaleOptions& options)
    : options_(options), scale_(static_cast<float>(options.initial_scale)) {
  check(std::isfinite(scale_) && scale_ > 0, "initial_scale", options.initial_scale, "above 0, and finite as a float");
  check(options.growth_factor > 1, "growth_factor", options.growth_factor, "above 1");
  check(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor", options.backoff_factor,
        "between 0 and 1");
  check(options.growth_interval > 0, "growth_interval", static_cast<double>(options.growth_interval), "above 0");
}

at::Tensor LossScale::scale(const at::Tensor& loss) const {
  return loss * scale_;
}

LossScale::Use* LossScale::find(const torch::optim::Optimizer& optimizer) {
  const auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& u) { return u.optimizer == &optimizer; });
  return use == uses_.end() ? nullptr : &*use;
}

// As _amp_foreach_non_finite_check_and_unscale_ does, which libtorch 1.13 lacks on the CPU.
LossScale::Use& LossScale::unscaled(torch::optim::Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  Use& use = uses_.emplace_back(Use{.optimizer = &optimizer});
  const auto inverse = static_cast<float>(1 / static_cast<double>(scale_));
  for (auto& group : optimizer.param_groups()) {
    for (at::Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      at::Tensor values = values_of(parameter.mutable_grad());
      use.found_infinite |= !at::isfinite(values).all().item<bool>();
      values.mul_(inverse);
    }
  }
  return use;
}

void LossScale::unscale(torch::optim::Optimizer& optimizer) {
  if (find(optimizer) != nullptr) {
    throw FailedPreconditionError(
        "LossScale::unscale() was called for an optimizer whose gradients have been divided by the scale since the "
        "last update(): call it once for each optimizer, before step(), and update() at the end");
  }
  unscaled(optimizer);
}

bool LossScale::step(torch::optim::Optimizer& optimizer) {
  Use* found = find(optimizer);
  if (found != nullptr && found->has_stepped) {
    throw FailedPreconditionError(
        "LossScale::step() was called twice for an optimizer without an update() in between: call update() once, after "
        "the step() of every optimizer");
  }
  Use& use = found != nullptr ? *found : unscaled(optimizer);
  use.has_stepped = true;
  if (!use.found_infinite) optimizer.step();
  return !use.found_infinite;
}

// As _amp_update_scale_ does, with a scale that is a float.
void LossScale::update() {
  if (uses_.empty()) {
    throw FailedPreconditionError(
        "LossScale::update() was called, but no step() since the last update(): call step(optimizer) before");
  }
  const bool skipped = std::any_of(uses_.begin(), uses_.end(), [](const Use& use) { return use.found_infinite; });
  uses_.clear();
  if (skipped) {
    scale_ = static_cast<float>(scale_ * options_.backoff_factor);
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    const auto larger = static_cast<float>(scale_ * options_.growth_factor);
    if (std::isfinite(larger)) scale_ = larger;
    growth_tracker_ = 0;
  }
  warn_of_skipped_steps(skipped);
}

void LossScale::warn_of_skipped_steps(bool skipped) {
  skipped_ = skipped ? skipped_ + 1 : 0;
  if (skipped_ != kSkippedInARow) return;
  log_warning(
      "the last {} updates were left out, because gradients were infinite or NaN at every loss scale, now {}: the loss "
      "itself is probably NaN, and nothing is trained any more. Go back to an earlier checkpoint, with a smaller "
      "learning rate",
      skipped_, scale_);
}

void LossScale::keep_in(KeptValues& kept, const std::string& name) {
  KeptValue scale = kept::value_of(name + "/scale", scale_);
  scale.assign = [this, assign = scale.assign](const Tensor& saved) {
    uses_.clear();  // what a step has begun that failed
    skipped_ = 0;
    assign(saved);
  };
  kept.add(std::move(scale));
  kept.keep(name + "/growth_tracker", growth_tracker_);
}

}  // namespace longhaul
