#pragma once

#include <cstdint>
#include <vector>

namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace longhaul {

// The learning rates of optimizers and the counts of schedulers, which are borrowed, as steps find them and leave them.
class RateWatch {
 public:
  void add(torch::optim::Optimizer& optimizer) { optimizers_.push_back(&optimizer); }
  void add(torch::optim::LRScheduler& scheduler) { schedulers_.push_back(&scheduler); }

  void begin();   // of a step
  void end();     // of a step that did not throw
  void forget();  // what was changed since the last step is known

  bool scheduler_stepped_between() const { return scheduler_stepped_between_; }  // the last step and this one
  bool rate_changed_between() const { return rate_changed_between_; }            // and no scheduler had stepped
  bool rate_changed_in_step() const;                                             // and no scheduler had stepped

 private:
  struct Look {
    std::vector<double> rates;
    std::vector<int64_t> counts;
  };
  Look look() const;

  std::vector<torch::optim::Optimizer*> optimizers_;
  std::vector<torch::optim::LRScheduler*> schedulers_;
  Look before_, after_;     // the begin and the end of a step
  bool has_ended_ = false;  // after_ is as the last step left them, and nobody has assigned any
  bool scheduler_stepped_between_ = false, rate_changed_between_ = false;
};

}  // namespace longhaul
