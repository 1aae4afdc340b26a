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

}  // namespace
}  // namespace longhaul
