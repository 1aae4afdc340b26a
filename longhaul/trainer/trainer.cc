#include "longhaul/trainer/trainer.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <cmath>
#include <limits>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/train/coordination/checked_options.h"
#include "longhaul/trainer/trainer_run.h"

namespace longhaul {
namespace {

std::string checked(std::string directory) {
  if (!directory.empty()) return directory;
  throw InvalidArgumentError(
      "Trainer: the directory is \"\", so nothing could be saved: give the run one, such as runs/net");
}

struct CombinedModule : torch::nn::Module {
  explicit CombinedModule(const std::vector<NamedModule>& modules) : torch::nn::Module("CombinedModule") {
    for (const NamedModule& part : modules) {
      part.module.get(part.name);
      register_module(part.name, part.module.pointer());
    }
  }
};

std::string placed(const std::optional<CheckedRun>& check, std::string directory) {
  if (!check) return directory;
  std::string place = check->place_of(directory);
  if (place != directory) log_info("longhaul resume-check: the run is in {}, not in {}", place, directory);
  return place;
}

std::unique_ptr<Preemption> preemption_for(const TrainerOptions& options) {
  if (options.preemption != nullptr) return nullptr;
  try {
    return std::make_unique<Preemption>();
  } catch (const FailedPreconditionError& error) {
    throw FailedPreconditionError(
        fmt::format("a Trainer handles the process's signals by a Preemption of its own: {}. If the program has a "
                    "Preemption, or two Trainers at a time, give it to each as TrainerOptions::preemption",
                    error.what()));
  }
}

// Each of these would end the training for good, or silently do nothing.
void check_numbers(const TrainerOptions& options) {
  check_not_negative("TrainerOptions::summary_steps", static_cast<double>(options.summary_steps));
  check_not_negative("TrainerOptions::best.top_k", options.best.top_k);
  check_not_negative("TrainerOptions::early_stopping.patience", options.early_stopping.patience);
  check_not_negative("TrainerOptions::early_stopping.min_delta", options.early_stopping.min_delta);
}

// The runs of a check are short, and restarts that continue from the first checkpoint would show nothing.
TrainerOptions checked(const std::optional<CheckedRun>& check, TrainerOptions options) {
  check_numbers(options);
  if (!check || !options.save_model_secs.is_auto()) return options;
  options.save_model_secs = Seconds{1};
  log_info("longhaul resume-check: checkpoints are saved every second, since their interval is kAuto");
  return options;
}

}  // namespace

torch::nn::Module& ModuleArgument::get(const std::string& name) const {
  if (module_) return *module_;
  throw InvalidArgumentError(fmt::format("Trainer: {} is null: make it before the Trainer", name));
}

Trainer::Trainer(std::string directory, const ModuleArgument& module, torch::optim::Optimizer& optimizer,
                 TrainerOptions options)
    : Trainer(std::move(directory), module, std::vector{&optimizer}, std::move(options)) {}

Trainer::Trainer(std::string directory, const ModuleArgument& module, std::vector<torch::optim::Optimizer*> optimizers,
                 TrainerOptions options)
    : Trainer(std::move(directory), module.pointer(), module.get("the module"), optimizers, std::move(options)) {}

Trainer::Trainer(std::string directory, const std::vector<NamedModule>& modules,
                 std::vector<torch::optim::Optimizer*> optimizers, TrainerOptions options)
    : Trainer(std::move(directory), ModuleArgument(std::make_shared<CombinedModule>(modules)), std::move(optimizers),
              std::move(options)) {}

Trainer::Trainer(std::string directory, std::shared_ptr<torch::nn::Module> owned, torch::nn::Module& module,
                 const std::vector<torch::optim::Optimizer*>& optimizers, TrainerOptions options)
    : checked_(CheckedRun::of_environment()),
      directory_(placed(checked_, checked(std::move(directory)))),
      options_(checked(checked_, std::move(options))),
      owned_(std::move(owned)),
      own_preemption_(preemption_for(options_)),
      preemption_(options_.preemption != nullptr ? options_.preemption : own_preemption_.get()),
      graph_(std::make_unique<Graph>()),
      loop_(torch_loop(Scope(*graph_), module, optimizers, options_.training)),
      run_(std::make_unique<TrainerRun>(directory_, options_, *graph_, module, loop_, *preemption_)) {
  if (checked_ && checked_->stop_step() >= 0) run_->preempt_after(checked_->stop_step());
}

Trainer::~Trainer() = default;

int Trainer::run(const std::function<void()>& body) {
  if (run_->session() != nullptr) {
    log_error("Trainer::run() was called within run(): a Trainer has one run at a time; the inner call does nothing");
    return 1;
  }
  error_ = nullptr;
  try {
    run_->supervise(body);
  } catch (const std::exception& error) {
    error_ = std::current_exception();
    log_error("the training in {} has ended with an error: {}", directory_, error.what());
  } catch (...) {
    error_ = std::current_exception();
    log_error("the training in {} has ended with an exception that is no std::exception", directory_);
  }
  return preemption_->exit_status(error_ ? 1 : 0);
}

TrainingLoops& Trainer::loops() const {
  return run_->loops();
}

void Trainer::add(const KeptValues& kept) {
  if (run_->supervisor() != nullptr) {
    throw FailedPreconditionError("Trainer::keep() was called after run(): what checkpoints have is fixed by then");
  }
  loop_.keep(scope(), kept);
  run_->evaluation().add(kept);
}

StepRange Trainer::steps(int64_t last) {
  return StepRange(loops(), last);
}

EpochRange Trainer::epochs(int64_t last) {
  return EpochRange(loops(), last);
}

BatchRange<Count> Trainer::batches(int64_t count) {
  return BatchRange<Count>(loops(), Count(count));
}

int64_t Trainer::step() const {
  return loops().step();
}

void Trainer::log(std::string_view name, const at::Tensor& value) {
  if (loops().is_before_loops() && value.defined() && value.requires_grad()) run_->log().warn_of_loss_outside(name);
  run_->log().log(name, value, step());
}

void Trainer::log(std::string_view name, double value) {
  run_->log().log(name, value, step());
}

double Trainer::validate(const std::function<double()>& evaluate, std::string_view name) {
  return run_->validate(evaluate, name);
}

double Trainer::best_metric() const {
  const LoopPosition::Values now = run_->position().get();
  return now.best_step < 0 ? std::numeric_limits<double>::quiet_NaN() : now.best_metric;
}

int64_t Trainer::best_step() const {
  return run_->position().get().best_step;
}

void Trainer::after_every(int64_t n, std::function<void()> action) {
  run_->after_every(n, std::move(action));
}

void Trainer::publish_weights(NewestWeights& newest, int64_t every_n_steps) {
  if (run_->supervisor() != nullptr) {
    throw FailedPreconditionError("Trainer::publish_weights() was called after run()");
  }
  run_->publish_weights(newest, every_n_steps);
}

void Trainer::finish(const std::string& reason) {
  run_->position().change([&](LoopPosition::Values& values) {
    values.finished = true;
    values.reason = excerpt(reason, 1000);  // it is in each checkpoint
  });
  log_info("the training in {} finishes at step {}: {}", directory_, step(), excerpt(reason, 1000));
}

bool Trainer::is_finished() const {
  return run_->position().get().finished;
}

const std::string& Trainer::restored_from() const {
  static const std::string none;
  return run_->supervisor() != nullptr ? run_->supervisor()->restored_from() : none;
}

void Trainer::request_stop() {
  run_->request_stop();
}

Supervisor& Trainer::supervisor() {
  if (run_->supervisor() != nullptr) return *run_->supervisor();
  throw FailedPreconditionError("Trainer::supervisor() was called before run(), which makes the Supervisor");
}

Session& Trainer::session() {
  if (run_->session() != nullptr) return *run_->session();
  throw FailedPreconditionError("Trainer::session() was called outside run(), which makes the session");
}

}  // namespace longhaul
