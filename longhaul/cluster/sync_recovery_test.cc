// Synchronous replicas in monitored sessions, while tasks with the tokens and with the gradients are restarted.
#include <gmock/gmock.h>

#include "longhaul/cluster/supervised_cluster_fixture.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/hooks/sync_replicas_hook.h"

namespace longhaul {
namespace {

constexpr int64_t kLastSyncStep = 60;

// Each step adds 1 to `w` on ps 1. The global step, and so the tokens, are on ps 0.
struct SyncCount {
  explicit SyncCount(int number) : optimizer(descent, 2, {.worker = "worker" + std::to_string(number)}) {}

  Graph graph;
  Scope root{graph};
  Variable step = ops::create_global_step(root.with_device("/job:ps/task:0"));
  Variable w = ops::variable(root.with_device("/job:ps/task:1"), "w", Tensor::scalar(0.f));
  GradientDescentOptimizer descent{1.0};
  SyncReplicasOptimizer optimizer;
};

// A replica's program on a thread of its own, until it has the token of the last step; number 0 is the chief.
class SyncProgram {
 public:
  SyncProgram(SupervisedCluster& cluster, int number)
      : cluster_(cluster), number_(number), thread_([this] { run(); }) {}
  ~SyncProgram() {
    EXPECT_TRUE(cluster_.within(Seconds{300}, [this] { return has_ended(); })) << "the program does not end";
    thread_.join();
  }

  bool has_ended() const { return has_ended_; }
  int64_t step() const { return step_; }
  std::string error() const { return has_ended_ ? error_ : "it has not ended"; }

 private:
  void run() {
    const SimulatedClock::AtWork work(cluster_.clock());
    error_ = coded_error_of([&] { train(); });
    has_ended_ = true;
  }
  void train() {
    SyncCount model(number_);
    const Operation train =
        model.optimizer.apply_gradients(model.root, {{ops::constant(model.root, -1.f), model.w}}, model.step);
    const Coordinator coord({.clock = &cluster_.clock()});
    const bool is_chief = number_ == 0;
    monitored_training_session(
        {.graph = &model.graph,
         .master = is_chief ? kWorker : kWorker1,
         .is_chief = is_chief,
         .checkpoint_dir = is_chief ? cluster_.logdir() : "",
         .hooks = {std::make_shared<SyncReplicasHook>(model.optimizer, is_chief, /*num_tokens=*/0)},
         .save_checkpoint_secs = Seconds{2},
         .save_summaries_steps = 0,
         .log_step_count_steps = 0,
         .max_wait_secs = Seconds{120},
         .failures = {.restart = {.max_restarts = std::nullopt}},
         .coordinator = coord},
        [&](MonitoredSession& session) {
          while (!session.should_stop() && step_ < kLastSyncStep) {
            session.run(train);
            step_ = session.run(model.optimizer.local_step()).item<int64_t>();
            coord.wait_for_stop(Seconds{0.25});
          }
        });
  }

  SupervisedCluster& cluster_;
  const int number_;
  std::atomic<int64_t> step_{0};
  std::atomic<bool> has_ended_{false};
  std::string error_;  // written before has_ended_
  std::thread thread_;
};

// The parameter: the task that is restarted.
class SyncRecovery : public ::testing::TestWithParam<std::string> {
 protected:
  const ThreadsEnd threads_end_;
  SupervisedCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
};

TEST_P(SyncRecovery, ReplicasWithoutFirstTokensTrainOnAfterARestart) {  // unlike SY-10
  SyncProgram chief(cluster_, 0), second(cluster_, 1);
  ASSERT_TRUE(cluster_.within(Seconds{120}, [&] { return cluster_.saved_step() >= 2; }));
  EXPECT_LT(chief.step(), kLastSyncStep);
  cluster_.restart_after(GetParam(), Seconds{1});
  EXPECT_TRUE(cluster_.within(Seconds{300}, [&] { return chief.has_ended() && second.has_ended(); }))
      << "at steps " << chief.step() << " and " << second.step();
  EXPECT_EQ(chief.error(), "");
  EXPECT_EQ(second.error(), "");
  EXPECT_GE(cluster_.sessions(), 4) << "both have lost one";
  SyncCount model(2);
  const auto session = cluster_.cluster().session(model.graph, {}, kWorker1);
  EXPECT_EQ(session->run(model.step).item<int64_t>(), kLastSyncStep);
  EXPECT_EQ(session->run(model.w).item<float>(), kLastSyncStep);
}

INSTANTIATE_TEST_SUITE_P(Tasks, SyncRecovery, ::testing::Values(kPs, kPs1),
                         [](const auto& task) { return task.param == kPs ? "WithTheTokens" : "WithTheGradients"; });

}  // namespace
}  // namespace longhaul
