#include "longhaul/trainer/trainer_run.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/no_steps_expected.h"
#include "longhaul/train/checkpointing/shown_saves.h"
#include "longhaul/train/status/run_status.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestValidation{3600};  // one that hangs is found in the end

// For the time that is left, on the page about the run.
void tell_end(const Supervisor& supervisor, Session& session, int64_t last_step) {
  if (!supervisor.is_chief()) return;
  const auto status = supervisor.service_context({std::shared_ptr<void>(), &session}).status;
  if (status) status->ends_at(last_step);
}

}  // namespace

TrainerRun::TrainerRun(const std::string& directory, const TrainerOptions& options, Graph& graph,
                       torch::nn::Module& module, TorchLoop& loop, Preemption& preemption)
    : directory_(directory),
      options_(options),
      graph_(graph),
      loop_(loop),
      preemption_(preemption),
      guard_(options.divergence, Scope(graph), loop),
      log_(options.summary_steps),
      loops_(loop, position_,
             {.should_stop = [this] { return supervisor_->should_stop(); },
              .session_begins = [this](Session& session) { return guard_.begin_run(*supervisor_, session); },
              .is_bad = [this] { return guard_.is_on() && guard_.is_bad(log_.loss()); },
              .leaves_out = [this](int64_t step) { return guard_.leaves_out(step); },
              .take_loss = [this] { return log_.take_loss(); },
              .moved_on =
                  [this] {
                    if (supervisor_->saver() != nullptr) supervisor_->saver()->forget_last_saved();
                  },
              .after_step = [this](int64_t step) { after_step(step); },
              .ends_at = [this](int64_t last_step) { tell_end(*supervisor_, *session_, last_step); }}),
      evaluation_(module, options.training),
      best_(position_, options) {
  position_.add_to(Scope(graph));
}

SupervisorOptions TrainerRun::supervisor_options() {
  SupervisorOptions options{.graph = &graph_,
                            .logdir = directory_,
                            .save_model_secs = options_.save_model_secs,
                            .chief = {.preemption = &preemption_}};
  if (options_.best.top_k > 0) {
    options.saver = std::make_shared<Saver>(SaverOptions{.graph = &graph_, .best = options_.best});
  }
  if (options_.supervisor) options_.supervisor(options);
  if (options.services.divergence) {
    throw InvalidArgumentError(
        "ServiceOptions::divergence is set for a Trainer, which watches the loss itself: set "
        "TrainerOptions::divergence");
  }
  guard_.searches_as(options);
  return options;
}

void TrainerRun::supervise(const std::function<void()>& body) {
  const Publishers publishers = make_publishers();  // they end with the run, also if it does not begin
  if (!supervisor_) supervisor_.make(supervisor_options());
  const std::shared_ptr<void> at_end(nullptr, [this](void*) { supervisor_.run_ends(); });
  while (true) {
    try {
      return supervisor_->managed_session([&](Session& session) { in_session(session, publishers, body); });
    } catch (const RollBackError& error) {
      log_info("run() calls its body again, with the model of step {}", error.rollback().restored_step);
    }
  }
}

void TrainerRun::in_session(Session& session, const Publishers& publishers, const std::function<void()>& body) {
  session_ = &session;
  supervisor_.session_begins();
  metric_.reset();                                                       // of a step that a rollback has undone
  const auto of_program = static_cast<std::ptrdiff_t>(actions_.size());  // the others may refer to what the body has
  const std::shared_ptr<void> at_end(nullptr, [this, of_program](void*) {
    session_ = nullptr;
    progress_.reset();
    actions_.erase(actions_.begin() + of_program, actions_.end());
  });
  loops_.begin_run(session, !supervisor_->restored_from().empty());
  log_.begin_run(directory_.empty() ? nullptr : supervisor_->summary_writer(), loops_.step(), guard_.is_on());
  evaluation_.begin_run();
  if (options_.progress) progress_.emplace(loops_.step());
  tell_if_finished();
  const std::shared_ptr<void> once_no_step_is_under_way(nullptr, [&publishers](void*) {
    for (const auto& publisher : publishers) publisher->end();
  });
  for (const auto& publisher : publishers) publisher->begin(session);
  try {
    loops_.run(body);
    guard_.raise();
    loops_.end_run();
  } catch (const std::exception& error) {
    loops_.fail_run(error.what());
    throw;
  } catch (...) {
    loops_.fail_run("an exception of an unknown type");
    throw;
  }
}

void TrainerRun::tell_if_finished() const {
  const LoopPosition::Values now = position_.get();
  if (position_.is_missing() && loops_.step() > 0) {
    log_warning(
        "{} was saved without a Trainer: epochs() begins with the first epoch, and steps() continues at step {}",
        supervisor_->restored_from(), loops_.step());
  }
  if (!now.finished) return;
  log_info("the training in {} has finished at step {}: {}. No step is made; to train on, use another directory",
           directory_, loops_.step(), now.reason);
}

void TrainerRun::after_step(int64_t step) {
  if (metric_) save_with(*std::exchange(metric_, std::nullopt));
  if (progress_ && progress_->due(step)) {
    log_.look_at_values();
    const ProgressLine line{
        .step = step, .last_step = loops_.last_step(), .values = log_.shown(), .part = loops_.part()};
    progress_->show(with_saves(line, supervisor_->save_status(), Clock::real().wall_time()));
  }
  const size_t count = actions_.size();  // an action may add others
  for (size_t i = 0; i < count; ++i) {
    if (step % actions_[i].first == 0) actions_[i].second();
  }
  if (step == stop_step_) preemption_.preempt();
}

void TrainerRun::after_every(int64_t n, std::function<void()> action) {
  if (n < 1) throw InvalidArgumentError(fmt::format("Trainer::after_every({}, ...): want at least 1 step", n));
  actions_.emplace_back(n, std::move(action));
}

void TrainerRun::publish_weights(NewestWeights& newest, int64_t every_n_steps) {
  if (every_n_steps < 1) {
    throw InvalidArgumentError(fmt::format("Trainer::publish_weights(..., {}): want at least 1 step", every_n_steps));
  }
  published_.emplace_back(&newest, every_n_steps);
}

TrainerRun::Publishers TrainerRun::make_publishers() const {
  Publishers publishers;
  for (const auto& [newest, every] : published_) {
    publishers.push_back(std::make_unique<WeightsPublisher>(
        *newest,
        WeightsPublisherOptions{
            .variables = loop_.training().model, .global_step = loop_.training().global_step, .every_n_steps = every}));
  }
  return publishers;
}

// The program is as the last step left it, so training does not mind how long this takes: a checkpoint may be saved.
double TrainerRun::evaluate_between_steps(const std::function<double()>& evaluate) {
  const bool in_step = loops_.suspend();
  try {
    const double metric = evaluation_.run(evaluate, /*between_steps=*/true);
    if (options_.best.top_k > 0) save_with(metric);
    loops_.check_stop();
    loops_.resume(in_step);
    return metric;
  } catch (const TrainingStopped&) {
    throw;
  } catch (...) {
    loops_.resume(in_step);  // the program may catch it, and go on
    throw;
  }
}

double TrainerRun::validate(const std::function<double()>& evaluate, std::string_view name) {
  const NoStepsExpected validating(kLongestValidation);
  double metric = 0;
  if (session_ != nullptr && !loops_.changed_anything()) {
    metric = evaluate_between_steps(evaluate);
  } else {
    metric = evaluation_.run(evaluate, /*between_steps=*/false);
    if (options_.best.top_k > 0) metric_ = metric;
  }
  log_.log(name, metric, loops_.step());
  best_.take(metric, loops_.step());
  return metric;
}

// A checkpoint that cannot be written is no reason to end the training.
void TrainerRun::save_with(double metric) {
  if (supervisor_->saver() == nullptr || supervisor_->save_path().empty()) return;
  try {
    supervisor_->saver()->save(*session_, supervisor_->save_path(), loop_.training().global_step, {.metric = metric});
  } catch (const DirectoryLostError&) {
    throw;
  } catch (const Error& error) {
    log_warning("the checkpoint of step {} with the metric {:.6g} was not saved: {}", loops_.step(), metric,
                error.what());
  }
}

}  // namespace longhaul
