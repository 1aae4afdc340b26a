#include "longhaul/binding/resume_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <bit>

namespace longhaul {

void ResumeWatch::add_parameter(const std::string& name, const at::Tensor& tensor) {
  names_.push_back({.name = name, .is_parameter = true});
  places_.try_emplace(tensor.unsafeGetTensorImpl(), tensors_.size());
  tensors_.add(tensor);
  gradients_.add(tensor);
}

void ResumeWatch::add_buffer(const std::string& name, const at::Tensor& tensor) {
  names_.push_back({.name = name});
  places_.try_emplace(tensor.unsafeGetTensorImpl(), tensors_.size());
  tensors_.add(tensor);
  gradients_.add(tensor);
}

void ResumeWatch::add_optimizer(const std::string& name, torch::optim::Optimizer& optimizer) {
  optimizers_.add(name, optimizer);
  rates_.add(optimizer);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    for (const auto& group : optimizer.param_groups()) {
      names_[i].has_optimizer |= std::any_of(group.params().begin(), group.params().end(),
                                             [&](auto& tensor) { return tensor.is_same(tensors_.tensor(i)); });
    }
  }
}

void ResumeWatch::add_generator(const std::string& name, std::shared_ptr<GeneratorWatch> generator) {
  generators_.push_back({name, std::move(generator)});
}

void ResumeWatch::begin(int64_t number) {
  tensors_.begin();
  gradients_.begin(/*looks_at_places=*/std::has_single_bit(static_cast<uint64_t>(++steps_)));
  rates_.begin();
  for (const NamedGenerator& generator : generators_) generator.watch->begin_step(number);
  look_between(number);
}

void ResumeWatch::end(const at::Tensor& loss) {
  tensors_.end();
  gradients_.end();
  rates_.end();
  for (const NamedGenerator& generator : generators_) generator.watch->end_step();
  look_at_updates();
  look_at_optimizers();
  look_at_generators();
  if (const auto sizes = leaves_.look_at(loss)) {
    find(Kind::kLeaf,
         fmt::format("the step function trains a tensor of shape [{}] that is neither a parameter of the "
                     "bound module nor in TorchTrainingOptions::state, so it is in no checkpoint. Register "
                     "the module that has it in the bound one, and bind its optimizer",
                     fmt::join(*sizes, ",")));
  }
}

void ResumeWatch::abandon() {
  for (const NamedGenerator& generator : generators_) generator.watch->abandon_step();
  gradients_.abandon();
  forget();
}

void ResumeWatch::assigned(const at::Tensor& tensor) {
  gradients_.forget();
  rates_.forget();
  if (!tensor.defined()) return;
  tensors_.assigned(tensor);
  is_assigned_ = true;
}

void ResumeWatch::carries_history(const std::string& name) {
  find(Kind::kHistory,
       fmt::format(
           "{} has the history that made it (it requires a gradient, and was not detached): a checkpoint has its "
           "value alone, so a restart computes no gradients beyond it, and the history of all steps stays in "
           "memory. Hand on a detach() of it",
           name));
}

void ResumeWatch::fetched_loss_alone() {
  find(Kind::kLoss,
       "the loss was fetched in a run of its own (TorchTraining::loss without train_op), and train_op was run in "
       "others: "
       "the loss is that of a step, so such a run makes one more, which counts. Fetch both in one run, or compute the "
       "loss of a model that is not to be trained from the module itself");
}

void ResumeWatch::forget() {
  tensors_.forget();
  gradients_.forget();
  rates_.forget();
}

void ResumeWatch::find(Kind kind, std::string text) {
  if (found_.insert(kind).second) findings_.push_back(std::move(text));
}

std::vector<std::string> ResumeWatch::take_findings() {
  return std::exchange(findings_, {});
}

// At the first step of all, what was assigned are the values that the program has made: it begins as it always does.
void ResumeWatch::name_written(const std::string& name, int64_t number) {
  if (is_assigned_ && number == 0) return;
  const std::string text =
      is_assigned_
          ? "{} was changed after it was restored, before the first step (weights that the body of the session "
            "loads or initialises): the training goes on from there, not from the checkpoint. Do it before "
            "the session, or where nothing was restored"
          : "{} was changed between two steps, outside of the step function (an optimizer that steps after the "
            "run, averages that are swapped in, a forward pass that writes statistics): a checkpoint may be "
            "of before or after it, and a restart does not repeat it. Do it in the step function; evaluate "
            "with a copy of the module, or with eval()";
  find(Kind::kBetween, fmt::format(fmt::runtime(text), name));
}

void ResumeWatch::look_between(int64_t number) {
  auto written = tensors_.written_between();
  if (!written) written = gradients_.written_between();
  if (written) name_written(names_[*written].name, number);
  is_assigned_ = false;
  if (rates_.scheduler_stepped_between()) {
    find(Kind::kScheduler,
         "a scheduler stepped between two steps, outside of the step function: a checkpoint may be of before or after "
         "it, and a restart does not repeat it. Step it in the step function");
  }
  if (rates_.rate_changed_between() && !declared_.rates_follow_step) {
    find(Kind::kScheduler,
         "a learning rate was changed between two steps by nothing that is bound: a scheduler's count is in no "
         "checkpoint, so a restart takes the rate and counts from the beginning. Bind the scheduler "
         "(TorchTrainingOptions::schedulers) and step it in the step function; keep what a rule of the program's own "
         "counts (the best loss, the steps since then, of a plateau) in an ops::external_variable; or, where the "
         "program "
         "sets the rate itself by the step's number, or by such a variable, say so "
         "(TorchTrainingOptions::rates_follow_step)");
  }
}

void ResumeWatch::look_at_update(size_t i) {
  if (gradients_.used_lost_gradient(i)) {
    find(
        Kind::kGradients,
        fmt::format("the values were read between two steps, as a checkpoint reads them, while gradients were gathered "
                    "for a later update, which has now been made ({}): a checkpoint lacks them, so a restart from it "
                    "makes that update with a part of them. Set TorchTrainingOptions::gradients, and they are saved",
                    names_[i].name));
  }
  if (names_[i].has_optimizer || declared_.updates_without_optimizer || !tensors_.has_gradient(i)) return;
  find(Kind::kOptimizer,
       fmt::format("{} is trained by the step function, and no optimizer is bound that has it: what an optimizer "
                   "keeps (its moments, its counts, the learning rate) is in no checkpoint. Pass the optimizer to "
                   "torch_training(), or, where the program updates it itself, or binds what its optimizer keeps in "
                   "another way, say so (TorchTrainingOptions::updates_without_optimizer)",
                   names_[i].name));
}

void ResumeWatch::look_at_updates() {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].is_parameter && changed_in_step(i)) look_at_update(i);
  }
  if (rates_.rate_changed_in_step() && !declared_.rates_follow_step) {
    find(Kind::kScheduler,
         "the step function changed a learning rate, and no scheduler that is bound has stepped: a scheduler's count "
         "is in no checkpoint, so a restart takes the rate and counts from the beginning. Bind the scheduler "
         "(TorchTrainingOptions::schedulers); keep what a rule of the program's own counts (the best loss, the steps "
         "since then, of a plateau) in an ops::external_variable; or, where the program sets the rate itself by the "
         "step's number, or by such a variable, say so (TorchTrainingOptions::rates_follow_step)");
  }
}

void ResumeWatch::look_at_optimizers() {
  if (declared_.updates_without_optimizer || found_.contains(Kind::kIdle)) return;
  const auto found = optimizers_.look([this](const at::Tensor& parameter) {
    const auto place = places_.find(parameter.unsafeGetTensorImpl());
    return place != places_.end() && tensors_.has_gradient(place->second) && changed_in_step(place->second);
  });
  if (!found) return;
  find(Kind::kIdle,
       fmt::format("the optimizer {} has not stepped in {} steps that changed {}, which it has: something else trains "
                   "that (an optimizer that was made anew after it was bound?), and what that keeps is in no "
                   "checkpoint. Bind the optimizer that steps, and change its options in place; or, where the program "
                   "updates it itself, say so (TorchTrainingOptions::updates_without_optimizer)",
                   found->optimizer, OptimizerWatch::kSteps,
                   names_[places_.at(found->parameter.unsafeGetTensorImpl())].name));
}

void ResumeWatch::look_at_generators() {
  for (const NamedGenerator& generator : generators_) {
    if (generator.watch->drawn_between_some_steps()) {
      find(Kind::kDrawn,
           fmt::format("{}: random numbers are drawn between some steps and not between others, outside of the step "
                       "function (a loader that shuffles, a sampler, randperm in the loop): a restart does not draw "
                       "the same ones at the same steps, so the training does not go on to the bit. For "
                       "batches use a longhaul::DataLoader; draw single numbers inside the step function, and what "
                       "the training does not depend on under a KeepRandomState",
                       generator.name));
    }
    if (generator.watch->seeded_between_some_steps()) {
      find(
          Kind::kSeeded,
          fmt::format("{}: it was seeded between two steps, or after a restore, and not between others: a restart "
                      "does not go on to the bit with the random numbers that an undisturbed training has. Seed before "
                      "the session, or before each step by the step's number",
                      generator.name));
    }
  }
}

void ResumeWatch::snapshot() {
  if (!declared_.gradients && !found_.contains(Kind::kGradients)) gradients_.snapshot();
}

}  // namespace longhaul
