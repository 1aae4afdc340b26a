#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace longhaul {

// The learning rates of optimizers (borrowed) and what schedulers count, before and after each step.
class RateWatch {
 public:
  void add(torch::optim::Optimizer& optimizer);  // unless its options have no rate that libtorch could ask for
  // `count` returns another number when the scheduler has stepped; `unkept`, if there is one, when members have changed
  // that checkpoints lack.
  void add_scheduler(const std::string& name, std::function<uint64_t()> count, std::function<uint64_t()> unkept);

  void begin();   // of a step
  void end();     // of a step that did not throw
  void forget();  // changes since the last step are accounted for

  bool scheduler_stepped_between() const { return scheduler_stepped_between_; }  // the last step and this one
  bool rate_changed_between() const { return rate_changed_between_; }            // without a scheduler's step
  bool changed() const;                                      // a rate or a count, by the step under way
  bool rate_changed_in_step() const;                         // without a scheduler's step
  std::optional<std::string> unkept_member_changed() const;  // in the step: the name of the scheduler

 private:
  struct Look {
    std::vector<double> rates;
    std::vector<uint64_t> counts, unkept;
  };
  Look look() const;

  std::vector<torch::optim::Optimizer*> optimizers_;
  struct Scheduler {
    std::string name;
    std::function<uint64_t()> count, unkept;
  };
  std::vector<Scheduler> schedulers_;
  Look before_, after_;     // at the beginning and the end of a step
  bool has_ended_ = false;  // after_ is valid: nothing was assigned since the last step
  bool scheduler_stepped_between_ = false, rate_changed_between_ = false;
};

}  // namespace longhaul
