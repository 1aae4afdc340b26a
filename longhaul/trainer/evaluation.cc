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

// Waits once for each device that the tensors are on. 0: an undefined one.
std::vector<uint64_t> looks_at(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> defined;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) defined.push_back(tensor);
  }
  const std::vector<TensorLook> looks = looks_at_all(defined);
  std::vector<uint64_t> all;
  auto look = looks.begin();
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.defined() ? look->elements * 31 + look->version : 0);
    if (tensor.defined()) ++look;
  }
  return all;
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

Evaluation::Looks Evaluation::named(const std::vector<std::string>& names, const std::vector<at::Tensor>& tensors) {
  const std::vector<uint64_t> found = looks_at(tensors);
  Looks looks;
  for (size_t i = 0; i < names.size(); ++i) looks.emplace_back(names[i], found[i]);
  return looks;
}

Evaluation::Looks Evaluation::look_at_module() const {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  const auto add = [&](const auto& named) {
    names.push_back(named.key());
    tensors.push_back(*named);
  };
  for (const auto& parameter : module_.named_parameters()) add(parameter);
  for (const auto& buffer : module_.named_buffers()) add(buffer);
  return named(names, tensors);
}

Evaluation::Looks Evaluation::look_at_values() const {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : options_.state) {
    names.push_back("state/" + name);
    tensors.push_back(*tensor);
  }
  for (const KeptValue& value : kept_) {
    names.push_back("kept/" + value.name);
    tensors.push_back(value.tensor != nullptr ? *value.tensor : at::Tensor());
  }
  Looks looks = named(names, tensors);
  for (size_t i = 0; i < kept_.size(); ++i) looks[options_.state.size() + i].second += kept_[i].look();
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
