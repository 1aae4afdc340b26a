// The program that the documentation of TensorFlow's Supervisor gives for replicas, line by line: alone, with "local",
// and as chief and worker on servers of one cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/checkpoint.h"
#include "longhaul/longhaul.h"
#include "longhaul/server.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestWait{60};  // for what another thread does

// What these runs found out.
struct ReplicaRun {
  int64_t own_steps = 0, step = 0;
  std::string restored_from;
};

// The program's own part of the cluster. `master` is FLAGS.master, or server.target.
struct ReplicaProgram {
  std::string master{};
  bool is_chief = true;
  std::string logdir{};
  std::string device{};                         // of the variables, which all replicas share
  std::function<bool(int64_t step)> is_done{};  // the step at which FLAGS.steps ends
  Seconds save_model_secs{600};
};

ReplicaRun run_replica(const ReplicaProgram& program) {
  ReplicaRun run;
  // with tf.Graph().as_default(): ...add operations to the graph...
  Graph graph;
  const Scope root(graph), shared = program.device.empty() ? root : root.with_device(program.device);
  const Variable weight = ops::variable(shared, "weight", Tensor::scalar(0.f));
  const Variable step = ops::global_step(shared);
  const Operation my_train_op =
      ops::group(root, {ops::assign_add(shared, weight, ops::constant(shared, Tensor::scalar(1.f))).op(),
                        ops::assign_add(shared, step, ops::constant(shared, Tensor::scalar<int64_t>(1))).op()});
  // sv = Supervisor(logdir='/shared_directory/...', is_chief=is_chief)
  Supervisor sv({.graph = &graph,
                 .is_chief = program.is_chief,
                 .logdir = program.logdir,
                 .save_model_secs = program.save_model_secs});
  // with sv.managed_session(server.target) as sess:
  sv.managed_session(
      [&](Session& sess) {
        // while not sv.should_stop(): sess.run(<my_train_op>)
        while (!sv.should_stop()) {
          sess.run(my_train_op);
          ++run.own_steps;
          run.step = sess.run(step).item<int64_t>();
          if (program.is_done(run.step)) sv.request_stop();
        }
      },
      {.master = program.master});
  run.restored_from = sv.restored_from();
  return run;
}

class ReplicaProgramTest : public ::testing::Test {
 protected:
  ReplicaProgramTest() {
    std::string name = (std::filesystem::temp_directory_path() / "longhaul_replica.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~ReplicaProgramTest() override { std::filesystem::remove_all(directory_); }

  struct Servers {
    ClusterSpec cluster;
    std::vector<std::unique_ptr<Server>> all;
    void start(const char* job, int index) {
      all.push_back(std::make_unique<Server>(cluster, ServerOptions{.job_name = job, .task_index = index}));
    }
  };

  // A ps and two workers on ports at which nobody listens.
  static Servers start_cluster() {
    for (int attempt = 0; attempt < 10; ++attempt) {
      try {
        Servers servers{.cluster =
                            ClusterSpec({{"ps", {free_address()}}, {"worker", {free_address(), free_address()}}})};
        for (const auto& [job, index] : {std::pair("worker", 0), std::pair("worker", 1), std::pair("ps", 0)})
          servers.start(job, index);
        return servers;
      } catch (const AlreadyExistsError&) {    // somebody else has taken it
      } catch (const InvalidArgumentError&) {  // one was drawn twice
      }
    }
    ADD_FAILURE() << "no free ports";
    return {};
  }
  // That a server has had a moment ago.
  static std::string free_address() { return Server::create_local_server()->target().substr(sizeof("grpc://") - 1); }

  static std::function<bool(int64_t)> until(int64_t last) {
    return [last](int64_t step) { return step >= last; };
  }

  std::string directory_;
};

TEST_F(ReplicaProgramTest, Alone) {
  const ReplicaRun run = run_replica({.master = "", .logdir = directory_, .is_done = until(5)});
  EXPECT_EQ(run.own_steps, 5);
  const ReplicaRun next = run_replica({.master = "", .logdir = directory_, .is_done = until(8)});
  EXPECT_EQ(next.own_steps, 3) << "a crash or an end is continued from the last checkpoint";
  EXPECT_EQ(next.restored_from, directory_ + "/model.ckpt-5");
}

// The model lives on in the server, so that the second run finds it and restores nothing.
TEST_F(ReplicaProgramTest, WithLocal) {
  Session::reset("local");
  EXPECT_EQ(run_replica({.master = "local", .logdir = directory_, .is_done = until(5)}).own_steps, 5);
  const ReplicaRun next = run_replica({.master = "local", .logdir = directory_, .is_done = until(8)});
  EXPECT_EQ(next.own_steps, 3);
  EXPECT_EQ(next.restored_from, "");
  Session::reset("local");
  EXPECT_EQ(run_replica({.master = "local", .logdir = directory_, .is_done = until(9)}).restored_from,
            directory_ + "/model.ckpt-8");
}

// The same program with is_chief=True on a server of its own: "still works fine as a single program".
TEST_F(ReplicaProgramTest, AsASingleProgramOnItsServer) {
  const std::unique_ptr<Server> server = Server::create_local_server();
  EXPECT_EQ(run_replica({.master = server->target(), .logdir = directory_, .is_done = until(5)}).own_steps, 5);
}

// Each is a task with a server of its own, and a third one has the model; each makes steps while the other does.
TEST_F(ReplicaProgramTest, AsChiefAndWorker) {  // RC-8
  const Servers servers = start_cluster();
  ASSERT_EQ(servers.all.size(), 3u);
  std::atomic<int64_t> chief_steps = 0, worker_steps = 0;
  const Seconds end = Clock::real().now() + kLongestWait;
  const auto both_train = [&](std::atomic<int64_t>& own) {
    return [&](int64_t) {
      ++own;
      return (chief_steps >= 10 && worker_steps >= 10) || Clock::real().now() > end;
    };
  };
  auto worker = std::async(std::launch::async, [&] {  // it comes first, and waits for the chief
    return run_replica({.master = servers.all[1]->target(),
                        .is_chief = false,
                        .logdir = directory_ + "/not_the_chief",
                        .device = "/job:ps/task:0",
                        .is_done = both_train(worker_steps)});
  });
  const ReplicaRun chief = run_replica({.master = servers.all[0]->target(),
                                        .is_chief = true,
                                        .logdir = directory_ + "/shared",
                                        .device = "/job:ps/task:0",
                                        .is_done = both_train(chief_steps)});
  ASSERT_EQ(worker.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  const ReplicaRun other = worker.get();
  EXPECT_GE(chief.own_steps, 10);
  EXPECT_GE(other.own_steps, 10);
  EXPECT_EQ(std::max(chief.step, other.step), chief.own_steps + other.own_steps) << "a step was lost, or made twice";
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/not_the_chief")) << "only the chief writes";
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/shared/checkpoint"));
}

// "while True: try: train()": a new Supervisor in the same process on the same logdir, after the ps has died.
TEST_F(ReplicaProgramTest, InALoopThatTriesAgain) {
  Servers servers = start_cluster();
  ASSERT_EQ(servers.all.size(), 3u);
  const std::string master = servers.all[0]->target();
  std::atomic<int64_t> step = 0;
  std::atomic<int> losses = 0;
  std::atomic<bool> is_over = false;
  auto program = std::async(std::launch::async, [&] {
    while (true) {
      try {
        return run_replica({.master = master,
                            .logdir = directory_,
                            .device = "/job:ps/task:0",
                            .is_done =
                                [&](int64_t now) {
                                  step = now;
                                  return is_over.load();
                                },
                            .save_model_secs = Seconds{0.2}});
      } catch (const AbortedError&) {
        ++losses;
      }
    }
  });
  const auto comes_true = [&](const std::function<bool()>& done) {
    const Seconds end = Clock::real().now() + kLongestWait;
    while (!done() && Clock::real().now() < end) {
      if (program.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready) break;
    }
    return done();
  };
  EXPECT_TRUE(comes_true([&] { return latest_checkpoint(FileSystem::real(), directory_).has_value() && step >= 5; }));
  servers.all.pop_back();
  servers.start("ps", 0);
  EXPECT_TRUE(comes_true([&] { return losses >= 1; }));
  const int64_t before = step;
  EXPECT_TRUE(comes_true([&] { return step > before; }));
  is_over = true;
  ASSERT_EQ(program.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_NE(program.get().restored_from, "");
}

// "In that case all Variables must have their device set."
TEST_F(ReplicaProgramTest, AWorkersVariablesNeedADevice) {
  EXPECT_THROW(run_replica({.master = "local", .is_chief = false, .is_done = until(1)}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
