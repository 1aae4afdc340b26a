#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "longhaul/binding/kept_values.h"

namespace torch::optim {
class LRScheduler;
class ReduceLROnPlateauScheduler;  // libtorch 2.x has it
}  // namespace torch::optim

namespace longhaul {

// A parameter of a scheduler that the program sets and no checkpoint restores.
struct SchedulerSetting {
  std::string name;
  std::function<double()> read;
};

// A scheduler of a bound program, made from a pointer to it: {.schedulers = {&warmup, &plateau}}. The scheduler is
// borrowed. Accepted are:
//
// - libtorch's LRScheduler and what is derived from it, such as StepLR: "schedulers/0" is how often it has stepped; a
//   class of the program that changes members of its own is named by a warning, unless it has keep_in(), or
// - libtorch's ReduceLROnPlateauScheduler: "kept/schedulers/0/best", .../num_bad_epochs, .../cooldown_counter and
//   .../last_epoch; other parameters after a restart (factor, patience, ...) are named by a warning, or
// - any class with a member function keep_in(KeptValues&, const std::string& name), derived from LRScheduler or not:
//
//   struct LinearWarmup {
//     torch::optim::Optimizer& optimizer;
//     int64_t steps = 0;
//     void step() { optimizer.param_groups()[0].options().set_lr(0.1 * std::min(1.0, ++steps / 1000.0)); }
//     void keep_in(lh::KeptValues& kept, const std::string& name) { kept.keep(name, steps); }  // kept/schedulers/0
//   };
class TorchScheduler {
 public:
  TorchScheduler(torch::optim::LRScheduler* scheduler) : counted_(scheduler) {}
  TorchScheduler(torch::optim::ReduceLROnPlateauScheduler* scheduler);
  template <typename T>
  TorchScheduler(T* scheduler) {
    constexpr bool is_counted = std::is_convertible_v<T*, torch::optim::LRScheduler*>;
    constexpr bool is_plateau = std::is_convertible_v<T*, torch::optim::ReduceLROnPlateauScheduler*>;
    static_assert(is_counted || is_plateau || kept::Composite<T>,
                  "checkpoints do not know what this scheduler keeps: give it a member void keep_in(lh::KeptValues& "
                  "kept, const std::string& name) { kept.keep(name, ...its members...); }");
    if constexpr (is_counted) counted_ = scheduler;
    if constexpr (kept::Composite<T>) {
      keep_ = [scheduler](KeptValues& kept, const std::string& name) { scheduler->keep_in(kept, name); };
    } else if constexpr (is_plateau) {
      *this = TorchScheduler(static_cast<torch::optim::ReduceLROnPlateauScheduler*>(scheduler));
    } else if constexpr (is_counted) {
      watch_members<torch::optim::LRScheduler>(scheduler);
    }
  }

  // nullptr: it is no LRScheduler.
  torch::optim::LRScheduler* counted() const { return counted_; }
  // Adds what it keeps itself, below `name`.
  void keep_in(KeptValues& kept, const std::string& name) const {
    if (keep_) keep_(kept, name);
  }
  // The parameters of ReduceLROnPlateauScheduler; a StepLR's are TrainingConditions' own.
  const std::vector<SchedulerSetting>& settings() const { return settings_; }
  // A hash of members that no checkpoint has; empty: there are none.
  const std::function<uint64_t()>& unkept() const { return unkept_; }

 private:
  template <typename Base, typename T>
  void watch_members(T* scheduler) {
    const auto* object = reinterpret_cast<const char*>(scheduler);
    if (reinterpret_cast<const char*>(static_cast<Base*>(scheduler)) != object || sizeof(T) == sizeof(Base)) return;
    unkept_ = [object] { return kept::hash_of(object + sizeof(Base), sizeof(T) - sizeof(Base)); };
  }

  torch::optim::LRScheduler* counted_ = nullptr;
  std::function<void(KeptValues&, const std::string&)> keep_;
  std::function<uint64_t()> unkept_;
  std::vector<SchedulerSetting> settings_;
};

}  // namespace longhaul
