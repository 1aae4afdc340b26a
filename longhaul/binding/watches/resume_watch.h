#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/binding/watches/change_watch.h"
#include "longhaul/binding/watches/generator_watch.h"
#include "longhaul/binding/watches/gradient_watch.h"
#include "longhaul/binding/watches/leaf_watch.h"
#include "longhaul/binding/watches/optimizer_watch.h"
#include "longhaul/binding/watches/rate_watch.h"

namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace longhaul {

// Detects changes by a bound program that no checkpoint has and a restart would not repeat: those made between two
// steps, and those of optimizers, schedulers or tensors that are not bound. It compares counters and a few elements,
// and reports each kind of finding once. From the same comparisons it also detects a program that computes gradients
// but forgets the update, and one that trains another module. Not synchronised, except for the generators' watches.
class ResumeWatch {
 public:
  struct Declared {  // by the program, so not a sign of a missing binding
    bool gradients = false;
    bool rates_follow_step = false;
    bool updates_without_optimizer = false;
  };
  explicit ResumeWatch(LeafWatch::IsBound is_bound) : leaves_(std::move(is_bound)) {}

  void declare(const Declared& declared) { declared_ = declared; }
  void add_parameter(const std::string& name, const at::Tensor& tensor);
  void add_buffer(const std::string& name, const at::Tensor& tensor);
  void add_optimizer(const std::string& name, torch::optim::Optimizer& optimizer);
  void add_scheduler(const std::string& name, std::function<uint64_t()> count, std::function<uint64_t()> unkept) {
    rates_.add_scheduler(name, std::move(count), std::move(unkept));
  }
  void add_generator(const std::string& name, std::shared_ptr<GeneratorWatch> generator);

  // After begin() of a step, call either end() or, if it threw, abandon().
  void begin(int64_t number);
  void end(const at::Tensor& loss);
  void abandon();
  bool changed() const { return tensors_.changed(); }  // by the step under way
  bool changed_or_drew() const;                        // the same, with rates, schedulers and generators

  void assigned(const at::Tensor& tensor);                 // undefined: not a parameter or buffer
  void carries_history(const std::string& name);           // of a state tensor
  void fetched_loss_alone();                               // in some runs, and the step in others
  void kept_was_written_between(const std::string& name);  // the last step and this one
  void snapshot();                                         // takes almost no time

  // The findings since the last call, as text; each kind only once.
  std::vector<std::string> take_findings();

 private:
  enum class Kind {
    kBetween,
    kKept,
    kUnkept,
    kOptimizer,
    kScheduler,
    kDrawn,
    kSeeded,
    kLeaf,
    kGradients,
    kIdle,
    kHistory,
    kLoss,
    kNoUpdate,
    kNotTrained
  };
  struct Named {
    std::string name;
    bool is_parameter = false;
    bool has_optimizer = false;
  };
  struct NamedGenerator {
    std::string name;
    std::shared_ptr<GeneratorWatch> watch;
  };

  void find(Kind kind, std::string text);
  void forget();
  void look_between(int64_t number);
  void name_written(const std::string& name, int64_t number);
  void look_at_optimizers();
  void look_at_updates();
  void look_at_update(size_t i);
  void look_for_updates();
  void look_for_training();
  void look_at_generators();
  bool changed_in_step(size_t i) const { return tensors_.changed_in_step(i) || gradients_.changed_in_step(i); }

  Declared declared_;
  std::vector<Named> names_;  // of tensors_
  ChangeWatch tensors_;
  GradientWatch gradients_;  // of tensors_
  OptimizerWatch optimizers_;
  RateWatch rates_;
  LeafWatch leaves_;
  std::vector<NamedGenerator> generators_;
  std::map<const c10::TensorImpl*, size_t> places_;  // the index in names_ of the first name
  int64_t steps_ = 0;
  struct Awaited {
    bool update = true;                // no parameter was seen to change yet
    int64_t steps_without_update = 0;  // of those that left gradients
    int64_t steps_without_gradient = 0;
  } awaited_;
  bool is_assigned_ = false;  // a tensor was assigned since the last step
  std::set<Kind> found_;
  std::vector<std::string> findings_;
};

}  // namespace longhaul
