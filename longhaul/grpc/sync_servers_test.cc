// Synchronous replicas on servers, and checkpoints that are saved while they train.
#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/hooks/sync_replicas_hook.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kLastStep = 40;

// A replica: each step adds 1 to `w` on ps 1; the global step, and so the tokens, are on ps 0.
struct ReplicaOnServers {
  ReplicaOnServers(LoopbackCluster& cluster, int number)
      : optimizer(descent, 2, {.worker = "worker" + std::to_string(number)}),
        train(optimizer.apply_gradients(root, {{ops::constant(root, -1.f), w}}, step)),
        init(ops::global_variables_initializer(root)),
        hook(optimizer, /*is_chief=*/number == 0, /*num_tokens=*/0),
        session(new_session(cluster.target("worker", number), graph)) {}

  void begin(Coordinator& coord) {
    hook.begin(graph);
    hook.after_create_session(*session, coord);
  }
  // Until it has the token of the last step; the error, if there is one.
  std::string run() {
    return coded_error_of([&] {
      for (int64_t at = 0; at < kLastStep; at = session->run(optimizer.local_step()).item<int64_t>()) {
        session->run(train);
      }
    });
  }

  Graph graph;
  const Scope root{graph};
  const Variable step = ops::create_global_step(root.with_device("/job:ps/task:0"));
  const Variable w = ops::variable(root.with_device("/job:ps/task:1"), "w", Tensor::scalar(0.f));
  GradientDescentOptimizer descent{1.0};
  SyncReplicasOptimizer optimizer;
  const Operation train, init;
  SyncReplicasHook hook;
  const std::shared_ptr<Session> session;
};

class SyncServers : public ::testing::Test {
 protected:
  // The step of the checkpoint, which is as the model was between two steps.
  static int64_t step_of_whole(const std::string& prefix) {
    const BundleReader reader(FileSystem::real(), prefix);
    EXPECT_THAT(reader.verify(), IsEmpty()) << prefix;
    const int64_t step = reader.read("global_step").item<int64_t>();
    EXPECT_EQ(reader.read("w").item<float>(), static_cast<float>(step)) << prefix;
    return step;
  }

  // Both replicas train to the end, while the chief saves.
  void train_and_save(const ServerOptions& servers) {
    LoopbackCluster cluster({{"ps", 2}, {"worker", 2}}, servers);
    ReplicaOnServers chief(cluster, 0), second(cluster, 1);
    Coordinator coord;
    chief.session->run(chief.init);
    Saver saver({.graph = &chief.graph, .max_to_keep = 0});
    chief.begin(coord);
    second.begin(coord);
    auto of_second = std::async(std::launch::async, [&] { return second.run(); });
    auto of_chief = std::async(std::launch::async, [&] { return chief.run(); });
    std::vector<int64_t> saved;
    while (of_chief.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready || saved.size() < 3) {
      saved.push_back(step_of_whole(saver.save(*chief.session, logdir_.file("model"), chief.step)));
    }
    EXPECT_EQ(of_chief.get(), "");
    EXPECT_EQ(of_second.get(), "");
    EXPECT_TRUE(std::is_sorted(saved.begin(), saved.end()));
    EXPECT_EQ(step_of_whole(saver.save(*chief.session, logdir_.file("model"), chief.step)), kLastStep);
    coord.request_stop();
    EXPECT_EQ(coded_error_of([&] { coord.join(); }), "");
  }
  size_t data_files() const {
    const auto names = FileSystem::real().list(logdir_.path());
    const std::string of_last = "model-" + std::to_string(kLastStep) + ".data-";
    return static_cast<size_t>(
        std::count_if(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(of_last); }));
  }

  const testing::TemporaryDirectory logdir_, elsewhere_;
};

TEST_F(SyncServers, CheckpointsAreOfTheMomentBetweenTwoSteps) {  // SY-5, unlike SA-122
  train_and_save({});
  EXPECT_EQ(data_files(), 2u);
}

// No server may use the directory: its values go to the chief.
TEST_F(SyncServers, SoAreThoseInADirectoryThatThePsDoesNotSee) {  // unlike SA-121
  train_and_save({.file_roots = {elsewhere_.path()}});
  EXPECT_EQ(data_files(), 2u);
  EXPECT_THAT(FileSystem::real().list(elsewhere_.path()), IsEmpty());
}

// A replica with gradients of its own, of the variables v0, v1 and the table `rows`, which are on a ps.
struct MeanReplica {
  MeanReplica(LoopbackCluster& cluster, int number, int replicas)
      : optimizer(descent, 2, {.total_num_replicas = replicas, .worker = "worker" + std::to_string(number)}) {
    const auto by = static_cast<float>(number) * 0.2f;
    const Output row = ops::indexed_slices(root, ops::constant(root, Tensor::of<float>(Shape{1, 1}, {0.1f + by})),
                                           ops::constant(root, Tensor::of<int64_t>({1})), 2);
    train = optimizer.apply_gradients(
        root, {{ops::constant(root, 0.1f + by), v0}, {ops::constant(root, 0.9f + by), v1}, {row, rows}}, step);
    init = ops::global_variables_initializer(root);
    session = new_session(cluster.target("worker", number), graph);
  }

  float value(const Variable& variable) const { return session->run(variable).item<float>(); }
  int64_t step_now() const { return session->run(step).item<int64_t>(); }
  int64_t local_step() const { return session->run(optimizer.local_step()).item<int64_t>(); }
  std::future<std::string> run_in_background() const {
    return std::async(std::launch::async, [this] { return coded_error_of([this] { session->run(train); }); });
  }

  Graph graph;
  const Scope root{graph}, on_ps = root.with_device("/job:ps/task:0");
  const Variable step = ops::create_global_step(on_ps);
  const Variable v0 = ops::variable(on_ps, "v0", Tensor::scalar(0.f)),
                 v1 = ops::variable(on_ps, "v1", Tensor::scalar(1.f)),
                 rows = ops::variable(on_ps, "rows", Tensor::of<float>(Shape{2, 1}, {3, 4}));
  GradientDescentOptimizer descent{2.0};
  SyncReplicasOptimizer optimizer;
  Operation train, init;
  std::shared_ptr<Session> session;
};

class SyncMeans : public ::testing::Test {
 protected:
  ~SyncMeans() override {
    coord_.request_stop();
    EXPECT_EQ(coded_error_of([&] { coord_.join(); }), "");
    for (const auto& replica : replicas_) replica->session->close();
  }
  void start(int count, int num_tokens = -1) {
    for (int i = 0; i < count; ++i) replicas_.push_back(std::make_unique<MeanReplica>(cluster_, i, count));
    at(0).session->run(at(0).init);
    for (int i = 0; i < count; ++i) {
      SyncReplicasHook hook(at(i).optimizer, /*is_chief=*/i == 0, num_tokens);
      hook.begin(at(i).graph);
      hook.after_create_session(*at(i).session, coord_);
    }
    tokens_ = at(0).optimizer.sync_token_queue().size(at(0).root);
  }
  MeanReplica& at(int i) const { return *replicas_[static_cast<size_t>(i)]; }
  void run(int i) const { at(i).session->run(at(i).train); }
  bool comes_to_step(int64_t step) const {
    return comes_true([&] { return at(0).step_now() == step; });
  }
  bool has_tokens(int32_t count) const {
    return comes_true([&] { return at(0).session->run(tokens_).item<int32_t>() == count; });
  }

  LoopbackCluster cluster_{{{"ps", 1}, {"worker", 3}}};
  std::vector<std::unique_ptr<MeanReplica>> replicas_;
  Output tokens_;
  Coordinator coord_;
};

TEST_F(SyncMeans, AStepIsTheMeanAndOldGradientsAreDropped) {  // SY-1, unlike SY-7, SY-11
  start(2);
  run(0);
  run(1);
  ASSERT_TRUE(comes_to_step(1));
  const auto expect_first_step = [&] {
    EXPECT_FLOAT_EQ(at(1).value(at(1).v0), 0 - (0.1f + 0.3f) / 2 * 2);
    EXPECT_FLOAT_EQ(at(1).value(at(1).v1), 1 - (0.9f + 1.1f) / 2 * 2);
    const Tensor rows = at(1).session->run(at(1).rows);
    EXPECT_FLOAT_EQ(rows.flat<float>()[0], 3);
    EXPECT_FLOAT_EQ(rows.flat<float>()[1], 4 - (0.1f + 0.3f) / 2 * 2);
  };
  expect_first_step();
  EXPECT_EQ(at(0).local_step() + at(1).local_step(), 0);
  run(0);  // with gradients of step 0
  run(1);
  EXPECT_EQ(at(0).step_now(), 1);
  expect_first_step();
  EXPECT_EQ(at(0).local_step(), 1);
  EXPECT_EQ(at(1).local_step(), 1);
  auto other = at(1).run_in_background();  // from now on they need each other
  run(0);
  EXPECT_EQ(other.get(), "");
  EXPECT_TRUE(comes_to_step(2));
}

TEST_F(SyncMeans, TheSlowestOfThreeIsSpare) {  // SY-2
  start(3);
  run(0);
  run(2);
  ASSERT_TRUE(comes_to_step(1));
  EXPECT_FLOAT_EQ(at(0).value(at(0).v0), -(0.1f + 0.5f) / 2 * 2);
  ASSERT_TRUE(has_tokens(3));
  run(1);  // too late for the first step
  EXPECT_FLOAT_EQ(at(0).value(at(0).v0), -(0.1f + 0.5f) / 2 * 2);
  EXPECT_EQ(at(1).local_step(), 1);
  run(0);
  run(2);
  ASSERT_TRUE(has_tokens(0));
  auto alone = at(1).run_in_background();
  EXPECT_EQ(alone.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_EQ(at(0).step_now(), 1);
  run(2);
  EXPECT_EQ(alone.get(), "");
  EXPECT_TRUE(comes_to_step(2));
}

TEST_F(SyncMeans, AReplicaWhoseProcessEndsGivesItsTokenBack) {  // unlike SY-10, unlike RC-12
  start(2, /*num_tokens=*/0);
  auto first = at(0).run_in_background();
  run(1);
  EXPECT_EQ(first.get(), "");
  ASSERT_TRUE(comes_to_step(1));
  ASSERT_TRUE(has_tokens(0));
  cluster_.stop("worker", 1);
  ASSERT_TRUE(has_tokens(1));
  run(0);
  run(0);  // in place of the other
  EXPECT_TRUE(comes_to_step(2));
}

}  // namespace
}  // namespace longhaul
