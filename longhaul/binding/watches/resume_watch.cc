#include "longhaul/binding/watches/resume_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <bit>

namespace longhaul {
namespace {

constexpr int64_t kStepsToFirstUpdate = 1000;    // no program accumulates gradients for so long
constexpr int64_t kStepsToFirstGradient = 2000;  // few programs collect examples for so long

std::string unkept_members_of(const std::string& scheduler) {
  return fmt::format(
      "{} changes members of its class in steps, and checkpoints have only how often it has stepped. Give the class a "
      "member function void keep_in(lh::KeptValues& kept, const std::string& name), which keeps them (kept.keep(name, "
      "...)), and pass the scheduler to TorchTrainingOptions::schedulers by a pointer to that class",
      scheduler);
}

}  // namespace

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
  gradients_.begin(/*looks_at_places=*/std::has_single_bit(static_cast<uint64_t>(++steps_)));
  tensors_.begin(/*looks_at_devices=*/gradients_.looks());
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
  look_for_updates();
  if (const auto name = rates_.unkept_member_changed()) find(Kind::kUnkept, unkept_members_of(*name));
  look_at_optimizers();
  look_at_generators();
  if (const auto sizes = leaves_.look_at(loss)) {
    find(Kind::kLeaf, fmt::format("the step function trains a tensor of shape [{}] that is neither a parameter of the "
                                  "bound module nor in TorchTrainingOptions::state, so checkpoints do not include it. "
                                  "Register the module that has it in the bound module, and bind its optimizer",
                                  fmt::join(*sizes, ",")));
  }
}

bool ResumeWatch::changed_or_drew() const {
  return changed() || rates_.changed() ||
         std::any_of(generators_.begin(), generators_.end(), [](auto& one) { return one.watch->has_drawn(); });
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
  find(Kind::kHistory, fmt::format("{} carries its autograd history (it requires a gradient and was not detached). A "
                                   "checkpoint has only its value, so a restart computes no gradients beyond it, and "
                                   "the history of all steps stays in memory. Carry over a detach() of it instead",
                                   name));
}

void ResumeWatch::kept_was_written_between(const std::string& name) {
  find(Kind::kKept, fmt::format("kept/{} was changed between two steps, outside the step function. A checkpoint may be "
                                "from before or after the change, and a restart does not repeat it; and a save that "
                                "reads it meanwhile, in another thread, may get half of the change. Make the change in "
                                "the step function",
                                name));
}

void ResumeWatch::fetched_loss_alone() {
  find(Kind::kLoss,
       "the loss was fetched in a separate run (TorchTraining::loss without train_op), while other runs had train_op. "
       "The loss is the loss of a step, so each such run trains one more step, and that step counts. Fetch both in one "
       "run. In a monitored session, a hook that fetches the loss does so in each run; make runs that are not to train "
       "in run_step_fn(), where context.session() has no hooks. To compute a loss without training, use the module "
       "itself");
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
      is_assigned_ ? "{} was changed after it was restored, before the first step (such as by code in the body of the "
                     "session that loads or initialises weights). Training continues from the changed value, not from "
                     "the checkpoint. Change it before the session, or only if nothing was restored"
                   : "{} was changed between two steps, outside the step function (such as by an optimizer that steps "
                     "after the run, by averages that are swapped in, or by a forward pass that writes statistics). A "
                     "checkpoint may be from before or after the change, and a restart does not repeat it. Make the "
                     "change in the step function. Evaluate with a copy of the module, or with eval()";
  find(Kind::kBetween, fmt::format(fmt::runtime(text), name));
}

void ResumeWatch::look_between(int64_t number) {
  auto written = tensors_.written_between();
  if (!written) written = gradients_.written_between();
  if (written) {
    awaited_.update = false;
    name_written(names_[*written].name, number);
  }
  is_assigned_ = false;
  if (rates_.scheduler_stepped_between()) {
    find(Kind::kScheduler,
         "a scheduler stepped between two steps, outside the step function. A checkpoint may be from before or after "
         "that, and a restart does not repeat it. Step the scheduler in the step function");
  }
  if (rates_.rate_changed_between() && !declared_.rates_follow_step) {
    find(Kind::kScheduler,
         "a learning rate was changed between two steps, but not by a bound scheduler. Checkpoints do not include the "
         "count of a scheduler that is not bound, so a restart restores the rate but counts from the beginning. Bind "
         "the scheduler (TorchTrainingOptions::schedulers) and step it in the step function. If the program changes "
         "the rate by a rule of its own, keep what the rule counts (such as the best loss and the steps since then, "
         "for a plateau) in an ops::external_variable. If the program sets the rate from the step number, or from such "
         "a variable, set TorchTrainingOptions::rates_follow_step");
  }
}

void ResumeWatch::look_at_update(size_t i) {
  if (gradients_.used_lost_gradient(i)) {
    find(Kind::kGradients,
         fmt::format(
             "the values were read between two steps, as for a checkpoint, while gradients were accumulated for a "
             "later update, which has now been made ({}). Such a checkpoint lacks these gradients, so a restart from "
             "it makes the update with only part of them. Set TorchTrainingOptions::gradients to save them",
             names_[i].name));
  }
  if (names_[i].has_optimizer || declared_.updates_without_optimizer || !tensors_.has_gradient(i)) return;
  find(Kind::kOptimizer,
       fmt::format("{} is trained by the step function, but no bound optimizer has it. Checkpoints do not include the "
                   "state of an optimizer that is not bound (its moments, its counts, the learning rate). Pass the "
                   "optimizer to torch_training(). If the program updates the parameter itself, or binds the state of "
                   "its optimizer in another way, set TorchTrainingOptions::updates_without_optimizer",
                   names_[i].name));
}

void ResumeWatch::look_at_updates() {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!names_[i].is_parameter || !changed_in_step(i)) continue;
    awaited_.update = false;
    look_at_update(i);
  }
  if (rates_.rate_changed_in_step() && !declared_.rates_follow_step) {
    find(Kind::kScheduler,
         "the step function changed a learning rate, but no bound scheduler has stepped. Checkpoints do not include "
         "the count of a scheduler that is not bound, so a restart restores the rate but counts from the beginning. "
         "Bind the scheduler (TorchTrainingOptions::schedulers). If the program changes the rate by a rule of its own, "
         "keep what the rule counts (such as the best loss and the steps since then, for a plateau) in an "
         "ops::external_variable. If the program sets the rate from the step number, or from such a variable, set "
         "TorchTrainingOptions::rates_follow_step");
  }
}

// Steps without gradients may be meant to change nothing, such as those that fill a memory of examples.
void ResumeWatch::look_for_updates() {
  if (!awaited_.update || declared_.updates_without_optimizer) return;
  const auto may_be_updated = [this](size_t i) { return names_[i].has_optimizer && tensors_.has_gradient(i); };
  size_t i = 0;
  while (i < names_.size() && !may_be_updated(i)) ++i;
  if (i == names_.size()) return look_for_training();
  if (++awaited_.steps_without_update < kStepsToFirstUpdate) return;
  awaited_.update = false;
  if (tensors_.changed_on_devices()) return;
  find(
      Kind::kNoUpdate,
      fmt::format("no parameter has changed in {} steps, although backward() has computed gradients ({} has one). Call "
                  "step() of the optimizer in the step function, after backward(), and set a learning rate above 0",
                  kStepsToFirstUpdate, names_[i].name));
}

void ResumeWatch::look_for_training() {
  if (found_.contains(Kind::kNotTrained)) return;
  size_t trainable = 0;
  for (size_t i = 0; i < names_.size(); ++i) {
    const at::Tensor& tensor = tensors_.tensor(i);
    if (!names_[i].is_parameter || !tensor.requires_grad()) continue;
    if (tensors_.has_gradient(i)) return;
    ++trainable;
  }
  if (trainable == 0 || ++awaited_.steps_without_gradient < kStepsToFirstGradient) return;
  awaited_.update = !tensors_.changed_on_devices();
  if (!awaited_.update) return;
  find(
      Kind::kNotTrained,
      fmt::format("no parameter of the bound module has changed or had a gradient in {} steps. Does the step function "
                  "train another module, such as a copy? Checkpoints have the values of the bound one: bind the module "
                  "that is trained. If these steps are to train nothing, as those that collect examples, all is well",
                  kStepsToFirstGradient));
}

void ResumeWatch::look_at_optimizers() {
  if (declared_.updates_without_optimizer || found_.contains(Kind::kIdle)) return;
  const auto found = optimizers_.look([this](const at::Tensor& parameter) {
    const auto place = places_.find(parameter.unsafeGetTensorImpl());
    return place != places_.end() && tensors_.has_gradient(place->second) && changed_in_step(place->second);
  });
  if (!found) return;
  find(Kind::kIdle,
       fmt::format("the optimizer {} has not stepped in {} steps that changed its parameter {}. Something else trains "
                   "the parameter (was the optimizer recreated after it was bound?), and checkpoints do not include "
                   "the state of that. Bind the optimizer that steps, and change its options in place. If the program "
                   "updates the parameter itself, set TorchTrainingOptions::updates_without_optimizer",
                   found->optimizer, OptimizerWatch::kSteps,
                   names_[places_.at(found->parameter.unsafeGetTensorImpl())].name));
}

void ResumeWatch::look_at_generators() {
  for (const NamedGenerator& generator : generators_) {
    if (generator.watch->drawn_between_some_steps()) {
      find(Kind::kDrawn,
           fmt::format("{}: random numbers are drawn between some steps but not others, outside the step function "
                       "(such as by a loader that shuffles, a sampler, or randperm in the loop). A restart does not "
                       "draw the same numbers at the same steps, so training does not continue bit for bit. Use a "
                       "longhaul::DataLoader for batches. Draw single numbers inside the step function, and numbers "
                       "that training does not depend on under a KeepRandomState",
                       generator.name));
    }
    if (generator.watch->seeded_between_some_steps()) {
      find(Kind::kSeeded,
           fmt::format("{}: the generator was seeded between some steps, or after a restore, but not between others. A "
                       "restart does not continue bit for bit with the random numbers of an uninterrupted run. Seed "
                       "before the session, or before each step with the step number",
                       generator.name));
    }
  }
}

void ResumeWatch::snapshot() {
  if (!declared_.gradients && !found_.contains(Kind::kGradients)) gradients_.snapshot();
}

}  // namespace longhaul
