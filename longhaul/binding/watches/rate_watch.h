#pragma once

#include <cstdint>
#include <vector>

namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace longhaul {

// The learning rates of optimizers and the step counts of schedulers (all borrowed), before and after each step.
class RateWatch {
 public:
  void add(torch::optim::Optimizer& optimizer) { optimizers_.push_back(&optimizer); }
  void add(torch::optim::LRScheduler& scheduler) { schedulers_.push_back(&scheduler); }

  void begin();   // of a step
  void end();     // of a step that did not throw
  void forget();  // changes since the last step are accounted for

  bool scheduler_stepped_between() const { return scheduler_stepped_between_; }  // the last step and this one
  bool rate_changed_between() const { return rate_changed_between_; }            // without a scheduler's step
  bool rate_changed_in_step() const;                                             // without a scheduler's step

 private:
  struct Look {
    std::vector<double> rates;
    std::vector<int64_t> counts;
  };
  Look look() const;

  std::vector<torch::optim::Optimizer*> optimizers_;
  std::vector<torch::optim::LRScheduler*> schedulers_;
  Look before_, after_;     // at the beginning and the end of a step
  bool has_ended_ = false;  // after_ is valid: nothing was assigned since the last step
  bool scheduler_stepped_between_ = false, rate_changed_between_ = false;
};

}  // namespace longhaul
