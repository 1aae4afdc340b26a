// Whole trainings with a SyncReplicasOptimizer: what they compute, and how they go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "longhaul/ops/ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/hooks/sync_replicas_hook.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {
namespace {

constexpr int kSyncSteps = 6;

// Small integers, so that sums and means of two are exact.
Tensor gradient_of(int step, int worker) {
  const auto at = static_cast<float>(step), by = static_cast<float>(worker);
  return Tensor::of<float>({2 * at + 8 * by, 4 - 2 * at, 6 * by});
}
Tensor mean_gradient_of(int step) {
  const Tensor first = gradient_of(step, 0), second = gradient_of(step, 1);
  std::vector<float> mean;
  for (size_t i = 0; i < 3; ++i) mean.push_back((first.flat<float>()[i] + second.flat<float>()[i]) / 2);
  return Tensor::of(mean);
}

// A variable trained with momentum by gradients that are fed.
struct FedModel {
  Graph graph;
  Scope root{graph};
  Variable step = ops::create_global_step(root);
  Variable w = ops::variable(root, "w", Tensor::of<float>({1, 2, 3}));
  Output gradient = ops::placeholder(root, kFloat, {3}, "gradient");
  MomentumOptimizer momentum{0.1, 0.9};
};

Tensor trained_alone() {
  FedModel model;
  const Operation train = model.momentum.apply_gradients(model.root, {{model.gradient, model.w}}, model.step);
  DirectSession session(model.graph, {});
  session.run(ops::global_variables_initializer(model.root));
  for (int step = 0; step < kSyncSteps; ++step) session.run(train, {{model.gradient, mean_gradient_of(step)}});
  return session.run(model.w);
}

// Each step by both, and no step before the one before it has ended at both: a replica that is ahead could take both
// tokens of a step, and push twice.
void make_sync_steps(const std::function<void(int replica, int step)>& push) {
  for (int step = 0; step < kSyncSteps; ++step) {
    auto other = std::async(std::launch::async, [&] { push(1, step); });
    push(0, step);
    other.get();
  }
}

// A chief that is a queue runner's and a hook's, until the end of the test.
class ChiefOf {
 public:
  ChiefOf(const SyncReplicasOptimizer& optimizer, const std::shared_ptr<Session>& session) {
    SyncReplicasHook hook(optimizer, /*is_chief=*/true, /*num_tokens=*/0);
    hook.begin(session->graph());
    hook.after_create_session(*session, coord_);
  }
  ~ChiefOf() {
    coord_.request_stop();
    EXPECT_NO_THROW(coord_.join());
  }

 private:
  Coordinator coord_;
};

TEST(SyncTraining, TwoReplicasOfServerComputeTheSameBitsAsOneWithTheMean) {  // SY-6
  const auto server = std::make_shared<TaskResources>();
  std::vector<std::unique_ptr<FedModel>> models;
  std::vector<std::shared_ptr<DirectSession>> sessions;
  std::vector<std::unique_ptr<SyncReplicasOptimizer>> optimizers;
  std::vector<Operation> trains;
  for (int i = 0; i < 2; ++i) {
    FedModel& model = *models.emplace_back(std::make_unique<FedModel>());
    const SyncReplicasOptions options{.worker = "w" + std::to_string(i)};
    optimizers.push_back(std::make_unique<SyncReplicasOptimizer>(model.momentum, 2, options));
    trains.push_back(optimizers.back()->apply_gradients(model.root, {{model.gradient, model.w}}, model.step));
    sessions.push_back(std::make_shared<DirectSession>(model.graph, SessionOptions{}, server));
  }
  sessions[0]->run(ops::global_variables_initializer(models[0]->root));
  {
    const ChiefOf chief(*optimizers[0], sessions[0]);
    sessions[1]->run(optimizers[1]->local_step_init_op());
    make_sync_steps([&](int replica, int step) {
      const auto i = static_cast<size_t>(replica);
      sessions[i]->run(trains[i], {{models[i]->gradient, gradient_of(step, replica)}});
    });
  }
  EXPECT_EQ(sessions[0]->run(models[0]->step).item<int64_t>(), kSyncSteps);
  EXPECT_TRUE(identical(sessions[1]->run(models[1]->w), trained_alone()));
}

TEST(SyncTraining, TwoReplicasOfOneGraphDoToo) {  // SY-6
  FedModel model;
  const Output second = ops::placeholder(model.root, kFloat, {3}, "second");
  SyncReplicasOptimizer optimizer(model.momentum, 2);
  const Operation one = optimizer.apply_gradients(model.root, {{model.gradient, model.w}}, model.step);
  const Operation two = optimizer.apply_gradients(model.root, {{second, model.w}}, model.step);
  const auto session = std::make_shared<DirectSession>(model.graph, SessionOptions{});
  session->run(ops::global_variables_initializer(model.root));
  {
    const ChiefOf chief(optimizer, session);
    make_sync_steps([&](int replica, int step) {
      const Output& fed = replica == 0 ? model.gradient : second;
      session->run(replica == 0 ? one : two, {{fed, gradient_of(step, replica)}});
    });
  }
  EXPECT_TRUE(identical(session->run(model.w), trained_alone()));
}

TEST(SyncTraining, AveragesMoveWithinTheStep) {
  FedModel model;
  ExponentialMovingAverage averages(0.5);
  SyncReplicasOptimizer optimizer(model.momentum, 1, {.variable_averages = &averages});
  const Operation train = optimizer.apply_gradients(model.root, {{model.gradient, model.w}}, model.step);
  const auto session = std::make_shared<DirectSession>(model.graph, SessionOptions{});
  session->run(ops::global_variables_initializer(model.root));
  const ChiefOf chief(optimizer, session);
  session->run(train, {{model.gradient, Tensor::of<float>({10, 0, -10})}});
  const Tensor shadow = session->run(*averages.average(model.w));
  EXPECT_FLOAT_EQ(shadow.flat<float>()[0], 0.5f);  // between 1 and 0
  EXPECT_FLOAT_EQ(shadow.flat<float>()[1], 2);
  EXPECT_FLOAT_EQ(shadow.flat<float>()[2], 3.5f);
}

// A process that makes steps until there are `steps` in all; the values at its end.
Tensor train_in(const std::string& directory, int steps) {
  FedModel model;
  SyncReplicasOptimizer optimizer(model.momentum, 1);
  const Operation train = optimizer.apply_gradients(model.root, {{model.gradient, model.w}}, model.step);
  Tensor values;
  monitored_training_session(
      {.graph = &model.graph,
       .checkpoint_dir = directory,
       .hooks = {std::make_shared<SyncReplicasHook>(optimizer, /*is_chief=*/true, /*num_tokens=*/0)},
       .save_checkpoint_steps = int64_t{2},
       .save_summaries_steps = int64_t{0},
       .log_step_count_steps = 0},
      [&](MonitoredSession& session) {
        int step = 0;
        session.run_step_fn([&](StepContext& context) { step = context.session().run(model.step).item<int32_t>(); });
        for (; step < steps; ++step) session.run(train, {{model.gradient, mean_gradient_of(step)}});
        session.run_step_fn([&](StepContext& context) { values = context.session().run(model.w); });
      });
  return values;
}

TEST(SyncTraining, GoesOnFromACheckpoint) {  // SY-8
  const testing::TemporaryDirectory directory;
  train_in(directory.path(), 3);
  EXPECT_TRUE(identical(train_in(directory.path(), kSyncSteps), trained_alone()));
}

TEST(SyncTraining, RunsUnderASupervisor) {  // SY-8
  const testing::TemporaryDirectory directory;
  FedModel model;
  SyncReplicasOptimizer optimizer(model.momentum, 1);
  const Operation train = optimizer.apply_gradients(model.root, {{model.gradient, model.w}}, model.step);
  const Operation tokens = optimizer.get_init_tokens_op(0);
  Supervisor sv({.graph = &model.graph,
                 .ready_for_local_init_op = optimizer.ready_for_local_init_op(),
                 .local_init_op = OpList(optimizer.chief_init_op()),
                 .logdir = directory.path()});
  Tensor values;
  sv.managed_session([&](Session& session) {
    sv.start_queue_runners(session.shared_from_this(), {QueueRunner(optimizer.get_chief_queue_runner())});
    session.run(tokens);
    for (int step = 0; step < kSyncSteps; ++step) session.run(train, {{model.gradient, mean_gradient_of(step)}});
    values = session.run(model.w);
  });
  EXPECT_TRUE(identical(values, trained_alone()));
}

}  // namespace
}  // namespace longhaul
