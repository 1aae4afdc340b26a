#include "longhaul/cluster/supervised_cluster_fixture.h"

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"

namespace longhaul {

SupervisedCluster::SupervisedCluster() {
  install_server_sessions([this](const std::string& target, Graph& graph, const SessionOptions& options) {
    ++sessions_;
    return cluster_.session(graph, options, target);
  });
}

SupervisedCluster::~SupervisedCluster() {
  install_server_sessions({});
}

void SupervisedCluster::restart_after(const std::string& task, Seconds time) {
  network().kill(task);
  clock().at(clock().now() + time, [this, task] { cluster_.start(task); });
}

int64_t SupervisedCluster::saved_step() const {
  const auto prefix = latest_checkpoint(FileSystem::real(), logdir());
  return prefix ? split_step(*prefix).step.value_or(0) : 0;
}

std::optional<CountedSteps> SupervisedCluster::look() {
  CountedModel model;
  const auto session = cluster_.session(model.graph, {.operation_timeout = Seconds{20}}, kWorker1);
  try {
    const std::vector<Tensor> values =
        session->run({model.read_a, model.read_b, model.read_step}, {}, {.snapshot = true});
    return CountedSteps{values[0].item<double>(), values[1].item<double>(), values[2].item<int64_t>()};
  } catch (const Error& error) {
    log_info("the model is not there: {}", error.what());
    return std::nullopt;
  }
}

TrainingProgram::TrainingProgram(SupervisedCluster& cluster, const Options& options)
    : cluster_(cluster), options_(options), thread_([this] { run(); }) {}

TrainingProgram::~TrainingProgram() {
  end();
  EXPECT_TRUE(cluster_.within(Seconds{300}, [this] { return has_ended(); })) << "the program does not end";
  thread_.join();
}

void TrainingProgram::run() {
  const SimulatedClock::AtWork work(cluster_.clock());
  while (!is_over_) {
    wait_for_task();
    try {
      train();
    } catch (const AbortedError& error) {
      ++losses_;
      log_warning("a session of task {} was lost: {}", options_.task, error.what());
    } catch (const std::exception& error) {
      error_ = error.what();
      break;
    }
  }
  has_ended_ = true;
}

void TrainingProgram::wait_for_task() {
  cluster_.within(Seconds{3600}, [this] { return is_over_ || cluster_.network().is_alive(options_.task); });
}

// One that is not the chief must not touch its own.
std::string TrainingProgram::logdir() const {
  return options_.is_chief ? cluster_.logdir() : cluster_.logdir() + "/not_the_chief";
}

void TrainingProgram::train() {
  if (options_.is_monitored) return train_monitored();
  CountedModel model;
  Supervisor sv({.graph = &model.graph,
                 .is_chief = options_.is_chief,
                 .logdir = logdir(),
                 .save_summaries_secs = Seconds{0},
                 .save_model_secs = options_.save_model_secs,
                 .stop_grace_secs = Seconds{30},
                 .clock = &cluster_.clock()});
  sv.managed_session(
      [&](Session& session) {
        while (!sv.should_stop() && !is_over_) {
          make_step(session, model);
          sv.coord().wait_for_stop(options_.between_steps);
        }
      },
      {.master = options_.task, .max_wait_secs = options_.max_wait_secs});
}

namespace {

// Reads in each run what its step has made.
class ReadsResults : public SessionRunHook {
 public:
  explicit ReadsResults(const Output& made) { args_.fetches.emplace_back(made); }
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext&, const SessionRunValues& values) override {
    EXPECT_GT(values.results[0].item<double>(), 0);
  }

 private:
  SessionRunArgs args_;
};

}  // namespace

void TrainingProgram::train_monitored() {
  CountedModel model;
  const Coordinator coord({.clock = &cluster_.clock()});
  monitored_training_session({.graph = &model.graph,
                              .master = options_.task,
                              .is_chief = options_.is_chief,
                              .checkpoint_dir = logdir(),
                              .hooks = {std::make_shared<ReadsResults>(model.added_a)},
                              .save_checkpoint_secs = options_.save_model_secs,
                              .save_summaries_steps = 0,
                              .log_step_count_steps = 0,
                              .max_wait_secs = options_.max_wait_secs,
                              .failures = {.restart = {.max_restarts = std::nullopt}},
                              .coordinator = coord},
                             [&](MonitoredSession& session) {
                               while (!session.should_stop() && !is_over_) {
                                 session.run(model.train);
                                 ++steps_;
                                 coord.wait_for_stop(options_.between_steps);
                               }
                             });
}

void TrainingProgram::make_step(Session& session, const CountedModel& model) {
  try {
    session.run(model.train);
    ++steps_;
  } catch (const Error& error) {
    const StepFate fate = error.failed_step().fate;
    if (fate == StepFate::kCommitted) ++committed_;
    if (fate == StepFate::kNotKnown) ++unknown_;
    throw;
  }
}

}  // namespace longhaul
