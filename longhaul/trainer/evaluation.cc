#include "longhaul/trainer/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <deque>
#include <memory>

#include "longhaul/base/log.h"
#include "longhaul/binding/keep_random_state.h"
#include "longhaul/binding/watches/change_watch.h"

namespace longhaul {
namespace {

// The module in eval() mode, without gradients and without effect on random numbers.
class Evaluating {
 public:
  Evaluating(torch::nn::Module& module, const std::map<std::string, at::Generator>& generators)
      : module_(module), is_training_(module.is_training()) {
    for (const auto& part : module.modules(/*include_self=*/false)) parts_.emplace_back(part, part->is_training());
    for (const auto& [name, generator] : generators) keep_others_.emplace_back(generator);
    module.eval();
  }
  ~Evaluating() {
    module_.train(is_training_);
    for (const auto& [part, is_training] : parts_) part->train(is_training);  // parents first
  }
  Evaluating(const Evaluating&) = delete;

 private:
  torch::nn::Module& module_;  // it may be on the stack
  const bool is_training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> parts_;
  const at::NoGradGuard no_grad_;
  const KeepRandomState keep_random_state_;
  std::deque<KeepRandomState> keep_others_;
};

uint64_t look_at(const at::Tensor& tensor) {
  if (!tensor.defined()) return 0;
  const TensorLook look = TensorLook::of(tensor);
  return look.elements * 31 + look.version;
}

const std::string* changed_one(const std::vector<std::pair<std::string, uint64_t>>& before,
                               const std::vector<std::pair<std::string, uint64_t>>& now) {
  for (size_t i = 0; i < before.size() && i < now.size(); ++i) {
    if (before[i] != now[i]) return &before[i].first;
  }
  return nullptr;
}

}  // namespace

void Evaluation::add(const KeptValues& kept) {
  kept_.insert(kept_.end(), kept.values().begin(), kept.values().end());
}

double Evaluation::run(const std::function<double()>& evaluate, bool between_steps) {
  const Looks module_before = look_at_module(), values_before = look_at_values();
  const auto evaluated = [&] {
    const Evaluating evaluating(module_, options_.generators);
    return evaluate();
  };
  const double metric = evaluated();
  tell(module_before, values_before, between_steps);
  return metric;
}

Evaluation::Looks Evaluation::look_at_module() const {
  Looks looks;
  for (const auto& parameter : module_.named_parameters()) looks.emplace_back(parameter.key(), look_at(*parameter));
  for (const auto& buffer : module_.named_buffers()) looks.emplace_back(buffer.key(), look_at(*buffer));
  return looks;
}

Evaluation::Looks Evaluation::look_at_values() const {
  Looks looks;
  for (const auto& [name, tensor] : options_.state) looks.emplace_back("state/" + name, look_at(*tensor));
  for (const KeptValue& value : kept_) looks.emplace_back("kept/" + value.name, value.look());
  return looks;
}

void Evaluation::tell(const Looks& module_before, const Looks& values_before, bool between_steps) {
  if (const std::string* name = changed_one(module_before, look_at_module()); name != nullptr && !has_told_of_module_) {
    has_told_of_module_ = true;
    log_warning(
        "the function given to Trainer::validate() has written to {} of the module, such as by train() within it, "
        "which lets batch norm take statistics, or by averages that it copies in. Training continues with what it has "
        "left there, and a checkpoint that is saved meanwhile has what is there at that moment. Evaluate with a copy "
        "of the module, or with AveragedWeights, which checkpoints do not see",
        *name);
  }
  if (!between_steps || has_told_of_values_) return;
  if (const std::string* name = changed_one(values_before, look_at_values())) {
    has_told_of_values_ = true;
    log_warning(
        "the function given to Trainer::validate() has changed {}. It runs between two steps, so a checkpoint may be "
        "from before or after the change, and a restart may make it once more. Change it behind validate(), in the "
        "loop; random numbers that only an evaluation needs come from an engine that is not kept",
        *name);
  }
}

}  // namespace longhaul
