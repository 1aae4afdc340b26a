#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <memory>
#include <mutex>
#include <optional>

namespace longhaul {

// A generator of random numbers as step functions find it and leave it. A checkpoint has the state that the last step
// left: what is drawn between two steps is drawn again by a restart, if it is drawn before every step.
//
//   fresh --begin_step--> in a step --end_step--> left --begin_step--> in a step ...
//   any --restore--> restored --begin_step--> in a step ...         any --forget--> fresh
//
// One for a generator, shared by all bindings. Any thread.
class GeneratorWatch {
 public:
  static std::shared_ptr<GeneratorWatch> of(const at::Generator& generator);

  explicit GeneratorWatch(at::Generator generator) : generator_(std::move(generator)) {}

  // As the last step left it, or as it was restored; as it is, while neither has happened.
  at::Tensor state();
  void restore(const at::Tensor& state);
  void forget();  // what was found so far: the training begins

  // `number`: of the steps made before it. In the first step after a restore a generator that was seeded once more with
  // the seed that the restored numbers come from, as a program does that starts again, gets its restored state back.
  void begin_step(int64_t number);
  void end_step();
  void abandon_step();  // it threw

  // Of all steps since forget() or restore().
  bool drawn_between_some_steps();   // and not between others, so a restart does not repeat it
  bool seeded_between_some_steps();  // and not between others, while steps draw numbers

 private:
  struct Moment {
    uint64_t seed = 0;
    std::optional<at::mt19937> engine;  // on the CPU, with the two that follow
    c10::optional<float> next_float;
    c10::optional<double> next_double;
    at::Tensor state;  // on other devices

    bool operator==(const Moment& other) const;
    bool is_just_seeded() const;
  };
  enum class Phase { kFresh, kRestored, kLeft };

  at::CPUGeneratorImpl* on_cpu() const;
  Moment moment();
  void put_back(const Moment& moment);
  bool judge(const Moment& found, int64_t number);  // true: the restored state counts

  std::mutex mutex_;
  at::Generator generator_;
  Phase phase_ = Phase::kFresh;
  Moment left_;         // unless fresh: as the last step left it, or as it was restored
  Moment found_;        // at the begin of the step
  int inside_ = 0;      // steps under way: of several bindings, where there are more than one
  int64_t same_ = 0;    // how often nothing had happened between two steps
  int64_t seeded_ = 0;  // how often it had been seeded
  int64_t drawn_ = 0;   // how often numbers had been drawn
  bool steps_draw_ = false;
};

}  // namespace longhaul
