#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace longhaul {

// The state of a random number generator before and after each step function. A checkpoint has the state after the last
// step: numbers drawn between two steps are drawn again by a restart, if they are drawn before every step.
//
//   fresh --begin_step--> in a step --end_step--> left --begin_step--> in a step ...
//   any --restore--> restored --begin_step--> in a step ...         any --forget--> fresh
//
// One per generator, shared by all bindings. Any thread.
class GeneratorWatch {
 public:
  static std::shared_ptr<GeneratorWatch> of(const at::Generator& generator);

  explicit GeneratorWatch(at::Generator generator) : generator_(std::move(generator)) {}

  // The state after the last step, or the restored one; the current one if neither has happened.
  at::Tensor state();
  void restore(const at::Tensor& state);
  void forget();  // the observations so far: training starts

  // `number`: of steps made before it. In the first step after a restore, a generator that was seeded again with the
  // seed of the restored state, as a restarted program does, gets the restored state back.
  void begin_step(int64_t number);
  void end_step();
  void abandon_step();  // the step threw
  bool has_drawn();     // the step under way

  // Over all steps since forget() or restore().
  bool drawn_between_some_steps();   // but not between others, so a restart does not repeat it
  bool seeded_between_some_steps();  // but not between others, while steps draw numbers

 private:
  struct Moment {
    uint64_t seed = 0;
    std::optional<at::mt19937> engine;  // on the CPU
    c10::optional<float> next_float;
    c10::optional<double> next_double;
    at::Tensor state;  // on other devices
  };
  enum class Phase { kFresh, kRestored, kLeft };

  at::CPUGeneratorImpl* on_cpu() const;
  Moment moment();
  bool is_at(const Moment& moment);  // without a copy of its state
  bool is_just_seeded(const Moment& moment);
  void put_back(const Moment& moment);
  bool judge(int64_t number);  // true: the restored state applies

  std::mutex mutex_;
  at::Generator generator_;
  Phase phase_ = Phase::kFresh;
  Moment left_;                  // unless fresh: the state after the last step, or the restored one
  std::optional<Moment> found_;  // at the beginning of the step; nullopt: left_
  int inside_ = 0;               // steps under way: possibly of several bindings
  int64_t same_ = 0;             // how often it was unchanged between two steps
  int64_t seeded_ = 0;           // how often it had been seeded
  int64_t drawn_ = 0;            // how often numbers had been drawn
  bool steps_draw_ = false;
};

}  // namespace longhaul
