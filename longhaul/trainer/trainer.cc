#include "longhaul/trainer/trainer.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <cmath>
#include <limits>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
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
    for (const NamedModule& part : modules) register_module(part.name, part.module);
  }
};

std::shared_ptr<torch::nn::Module> combine(const std::vector<NamedModule>& modules) {
  for (const NamedModule& part : modules) {
    if (part.module) continue;
    throw InvalidArgumentError(fmt::format("Trainer: the module {} is null", part.name));
  }
  return std::make_shared<CombinedModule>(modules);
}

}  // namespace

Trainer::Trainer(std::string directory, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                 TrainerOptions options)
    : Trainer(std::move(directory), module, std::vector{&optimizer}, std::move(options)) {}

Trainer::Trainer(std::string directory, torch::nn::Module& module, std::vector<torch::optim::Optimizer*> optimizers,
                 TrainerOptions options)
    : Trainer(std::move(directory), nullptr, module, optimizers, std::move(options)) {}

Trainer::Trainer(std::string directory, const std::vector<NamedModule>& modules,
                 std::vector<torch::optim::Optimizer*> optimizers, TrainerOptions options)
    : Trainer(std::move(directory), combine(modules), optimizers, std::move(options)) {}

Trainer::Trainer(std::string directory, std::shared_ptr<torch::nn::Module> owned,
                 const std::vector<torch::optim::Optimizer*>& optimizers, TrainerOptions options)
    : Trainer(std::move(directory), owned, *owned, optimizers, std::move(options)) {}

Trainer::Trainer(std::string directory, std::shared_ptr<torch::nn::Module> owned, torch::nn::Module& module,
                 const std::vector<torch::optim::Optimizer*>& optimizers, TrainerOptions options)
    : directory_(checked(std::move(directory))),
      options_(std::move(options)),
      owned_(std::move(owned)),
      own_preemption_(options_.preemption != nullptr ? nullptr : std::make_unique<Preemption>()),
      preemption_(options_.preemption != nullptr ? options_.preemption : own_preemption_.get()),
      graph_(std::make_unique<Graph>()),
      loop_(torch_loop(Scope(*graph_), module, optimizers, options_.training)),
      run_(std::make_unique<TrainerRun>(directory_, options_, *graph_, module, loop_, *preemption_)) {}

Trainer::~Trainer() = default;

int Trainer::run(const std::function<void()>& body) {
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
    values.reason = reason;
  });
  log_info("the training in {} finishes at step {}: {}", directory_, step(), reason);
}

bool Trainer::is_finished() const {
  return run_->position().get().finished;
}

const std::string& Trainer::restored_from() const {
  static const std::string none;
  return run_->supervisor() != nullptr ? run_->supervisor()->restored_from() : none;
}

void Trainer::request_stop() {
  if (run_->supervisor() != nullptr) run_->supervisor()->request_stop();
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
