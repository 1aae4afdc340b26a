#include "longhaul/binding/watches/rate_watch.h"

#include <torch/optim/optimizer.h>

#include "longhaul/binding/values/torch_values.h"

namespace longhaul {

RateWatch::Look RateWatch::look() const {
  Look look;
  for (const torch::optim::Optimizer* optimizer : optimizers_) {
    for (const auto& group : optimizer->param_groups()) look.rates.push_back(group.options().get_lr());
  }
  for (torch::optim::LRScheduler* scheduler : schedulers_) look.counts.push_back(step_count(*scheduler));
  return look;
}

void RateWatch::begin() {
  before_ = look();
  scheduler_stepped_between_ = has_ended_ && before_.counts != after_.counts;
  rate_changed_between_ = has_ended_ && !scheduler_stepped_between_ && before_.rates != after_.rates;
  has_ended_ = false;
}

void RateWatch::end() {
  after_ = look();
  has_ended_ = true;
}

void RateWatch::forget() {
  has_ended_ = false;
}

bool RateWatch::rate_changed_in_step() const {
  return before_.rates != after_.rates && before_.counts == after_.counts;
}

}  // namespace longhaul
