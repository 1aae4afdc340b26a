// Synchronous replicas between graphs: accumulators and tokens on ps tasks, a worker's graph and session in each task.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "longhaul/cluster/worker/training_cluster_fixture.h"
#include "longhaul/ops/ops.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/hooks/sync_replicas_hook.h"

namespace longhaul {
namespace {

constexpr int kStepsTogether = 6;

// Small integers, so that sums and means of two are exact.
Tensor share_of_gradient(int step, int worker) {
  const auto at = static_cast<float>(step), by = static_cast<float>(worker);
  return Tensor::of<float>({2 * at + 8 * by, 4 - 2 * at, 6 * by});
}
Tensor mean_of_shares(int step) {
  const Tensor first = share_of_gradient(step, 0), second = share_of_gradient(step, 1);
  std::vector<float> mean;
  for (size_t i = 0; i < 3; ++i) mean.push_back((first.flat<float>()[i] + second.flat<float>()[i]) / 2);
  return Tensor::of(mean);
}

// A variable on ps 1, trained with momentum by gradients that are fed; the global step is on ps 0.
struct SharedModel {
  explicit SharedModel(bool local)
      : on0(local ? root : root.with_device("/job:ps/task:0")),
        on1(local ? root : root.with_device("/job:ps/task:1")),
        step(ops::create_global_step(on0)),
        w(ops::variable(on1, "w", Tensor::of<float>({1, 2, 3}))),
        gradient(ops::placeholder(root, kFloat, {3}, "gradient")) {}

  Graph graph;
  Scope root{graph};
  Scope on0, on1;
  Variable step, w;
  Output gradient;
  MomentumOptimizer momentum{0.1, 0.9};
};

Tensor trained_by_one() {
  SharedModel model(/*local=*/true);
  const Operation train = model.momentum.apply_gradients(model.root, {{model.gradient, model.w}}, model.step);
  const auto session = new_session("", model.graph);
  session->run(ops::global_variables_initializer(model.root));
  for (int step = 0; step < kStepsTogether; ++step) session->run(train, {{model.gradient, mean_of_shares(step)}});
  return session->run(model.w);
}

// A replica on a task, with its own graph and session.
struct ClusterReplica {
  ClusterReplica(TrainingCluster& cluster, const std::string& task, int index)
      : number(index),
        optimizer(model.momentum, 2, {.worker = "worker" + std::to_string(index)}),
        train(optimizer.apply_gradients(model.root, {{model.gradient, model.w}}, model.step)),
        init(ops::global_variables_initializer(model.root)),
        session(cluster.session(model.graph, {}, task)) {}

  void run(int step) { session->run(train, {{model.gradient, share_of_gradient(step, number)}}); }

  const int number;
  SharedModel model{/*local=*/false};
  SyncReplicasOptimizer optimizer;
  Operation train, init;
  std::shared_ptr<Session> session;
};

// A chief and another replica, on a worker task each, without first tokens.
class SyncCluster : public ::testing::Test {
 protected:
  SyncCluster() {
    chief_.session->run(chief_.init);
    begin(chief_);
    begin(second_);
  }
  void begin(ClusterReplica& replica) {
    SyncReplicasHook hook(replica.optimizer, /*is_chief=*/&replica == &chief_, /*num_tokens=*/0);
    hook.begin(replica.model.graph);
    hook.after_create_session(*replica.session, coord_);
  }
  // Its process ends and another one begins; the replicas have new sessions, which are not yet begun.
  void restart(const std::string& task) {
    coord_.request_stop();
    EXPECT_NO_THROW(coord_.join());
    coord_ = Coordinator({.clock = &cluster_.clock()});
    chief_.session->close();
    second_.session->close();
    cluster_.network().kill(task);
    pass(Seconds{1});
    cluster_.start(task);
    chief_.session = cluster_.session(chief_.model.graph, {}, kWorker);
    second_.session = cluster_.session(second_.model.graph, {}, kWorker1);
  }
  void pass(Seconds time) {
    cluster_.clock().run_until([] { return false; }, time);
  }
  // Each step by both, and none before the one before it has ended at both: a replica that is ahead could take both
  // tokens of a step, and push twice.
  void run_both(int steps, int first = 0) {
    for (int step = first; step < steps; ++step) {
      std::thread other([&] {
        const SimulatedClock::AtWork work_of_other(cluster_.clock());
        EXPECT_EQ(coded_error_of([&] { second_.run(step); }), "");
      });
      EXPECT_EQ(coded_error_of([&] { chief_.run(step); }), "");
      other.join();
    }
  }
  // The model is then as a checkpoint has it, of a step before that of the tokens or of the accumulator that live on.
  void check_that_second_waits_for_chief_after_restart(const std::string& task) {
    run_both(2);
    restart(task);
    chief_.session->run(chief_.init);
    std::atomic<bool> has_begun{false};
    std::thread other([&] {
      const SimulatedClock::AtWork work_of_other(cluster_.clock());
      EXPECT_EQ(coded_error_of([&] {
                  begin(second_);
                  has_begun = true;
                  second_.run(0);
                }),
                "");
    });
    pass(Seconds{5});
    EXPECT_FALSE(has_begun);
    EXPECT_EQ(coded_error_of([&] {
                begin(chief_);
                chief_.run(0);
              }),
              "");
    other.join();
    run_both(kStepsTogether, /*first=*/1);
    EXPECT_EQ(step_now(), kStepsTogether);
    EXPECT_TRUE(identical(second_.session->run(second_.model.w), trained_by_one()));
    end();
  }
  int64_t step_now() { return chief_.session->run(chief_.model.step).item<int64_t>(); }
  void end() {
    coord_.request_stop();
    EXPECT_NO_THROW(coord_.join());
    chief_.session->close();
    second_.session->close();
    EXPECT_TRUE(cluster_.nothing_is_left(Seconds{60}));
  }

  TrainingCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
  ClusterReplica chief_{cluster_, kWorker, 0}, second_{cluster_, kWorker1, 1};
  Coordinator coord_{{.clock = &cluster_.clock()}};
};

TEST_F(SyncCluster, TwoWorkersComputeTheSameBitsAsOneProcess) {  // SY-5, SY-6, SY-8
  run_both(kStepsTogether);
  EXPECT_EQ(second_.session->run(second_.model.step).item<int64_t>(), kStepsTogether);
  EXPECT_TRUE(identical(second_.session->run(second_.model.w), trained_by_one()));
  end();
}

TEST_F(SyncCluster, AReplicaThatIsFasterThanItsChiefAfterARestartOfTheTokensTaskWaitsForIt) {  // unlike SY-10
  check_that_second_waits_for_chief_after_restart(kPs);
}

TEST_F(SyncCluster, AReplicaThatIsFasterThanItsChiefAfterARestartOfTheGradientsTaskWaitsForIt) {
  check_that_second_waits_for_chief_after_restart(kPs1);
}

TEST_F(SyncCluster, ARestartOfTheTaskWithTheGradientsLosesNoToken) {
  run_both(2);
  restart(kPs1);
  chief_.session->run(chief_.init);
  begin(chief_);
  begin(second_);
  run_both(kStepsTogether);
  EXPECT_EQ(step_now(), kStepsTogether);
  EXPECT_TRUE(identical(second_.session->run(second_.model.w), trained_by_one()));
  end();
}

TEST_F(SyncCluster, AWorkerThatDiesGivesItsTokenBack) {  // unlike SY-10, unlike RC-12
  run_both(1);
  cluster_.network().kill(kWorker1);
  const Seconds died = cluster_.clock().now();
  chief_.run(1);  // with its own token, and then it takes the other's
  EXPECT_EQ(step_now(), 1);
  chief_.run(1);
  EXPECT_EQ(step_now(), 2);
  EXPECT_LE((cluster_.clock().now() - died).count(), 5);
  end();
}

// Replication within a graph: one session, a part of the graph for each worker.
TEST(SyncInGraph, TwoReplicasOfOneGraphTrainAsOne) {  // SY-6
  TrainingCluster cluster;
  const SimulatedClock::AtWork work(cluster.clock());
  SharedModel model(/*local=*/false);
  const Output second = ops::placeholder(model.root, kFloat, {3}, "second");
  SyncReplicasOptimizer optimizer(model.momentum, 2);
  const auto trained_on = [&](const char* worker, const Output& fed) {
    const Output gradient = ops::mul(model.root.with_device(worker), fed, ops::constant(model.root, 1.f));
    return optimizer.apply_gradients(model.root, {{gradient, model.w}}, model.step);
  };
  const std::vector<Operation> trains{trained_on("/job:worker/task:0", model.gradient),
                                      trained_on("/job:worker/task:1", second)};
  const std::shared_ptr<Session> session = cluster.session(model.graph, {}, kWorker);
  session->run(ops::global_variables_initializer(model.root));
  Coordinator coord({.clock = &cluster.clock()});
  SyncReplicasHook hook(optimizer, /*is_chief=*/true, /*num_tokens=*/0);
  hook.begin(model.graph);
  hook.after_create_session(*session, coord);
  for (int step = 0; step < kStepsTogether; ++step) {
    std::thread other([&] {
      const SimulatedClock::AtWork work_of_other(cluster.clock());
      EXPECT_EQ(coded_error_of([&] { session->run(trains[1], {{second, share_of_gradient(step, 1)}}); }), "");
    });
    EXPECT_EQ(coded_error_of([&] { session->run(trains[0], {{model.gradient, share_of_gradient(step, 0)}}); }), "");
    other.join();
  }
  EXPECT_GT(cluster.network().calls(kWorker, kWorker1), 0u) << "the other worker has its part";
  EXPECT_TRUE(identical(session->run(model.w), trained_by_one()));
  coord.request_stop();
  EXPECT_NO_THROW(coord.join());
  session->close();
  EXPECT_TRUE(cluster.nothing_is_left(Seconds{60}));
}

}  // namespace
}  // namespace longhaul
