#include "longhaul/binding/watches/rate_watch.h"

#include <torch/optim/optimizer.h>

#include <utility>

namespace longhaul {

RateWatch::Look RateWatch::look() const {
  Look look;
  for (const torch::optim::Optimizer* optimizer : optimizers_) {
    for (const auto& group : optimizer->param_groups()) look.rates.push_back(group.options().get_lr());
  }
  for (const Scheduler& scheduler : schedulers_) {
    look.counts.push_back(scheduler.count());
    look.unkept.push_back(scheduler.unkept ? scheduler.unkept() : 0);
  }
  return look;
}

void RateWatch::add(torch::optim::Optimizer& optimizer) {
  try {
    for (const auto& group : optimizer.param_groups()) group.options().get_lr();
  } catch (const c10::Error&) {
    return;  // a class of the program that does not override get_lr()
  }
  optimizers_.push_back(&optimizer);
}

void RateWatch::add_scheduler(const std::string& name, std::function<uint64_t()> count,
                              std::function<uint64_t()> unkept) {
  schedulers_.push_back({name, std::move(count), std::move(unkept)});
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

bool RateWatch::changed() const {
  const Look now = look();
  return now.rates != before_.rates || now.counts != before_.counts;
}

bool RateWatch::rate_changed_in_step() const {
  return before_.rates != after_.rates && before_.counts == after_.counts;
}

std::optional<std::string> RateWatch::unkept_member_changed() const {
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    if (before_.unkept[i] != after_.unkept[i]) return schedulers_[i].name;
  }
  return std::nullopt;
}

}  // namespace longhaul
