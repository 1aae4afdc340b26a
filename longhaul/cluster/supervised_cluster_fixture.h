#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "longhaul/cluster/worker/training_cluster_fixture.h"
#include "longhaul/ops/ops.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {

// A step adds 1 to `a` on ps 0, and to `b` on ps 1 a 1 that it computes from `a`; the global step is on ps 0. Between
// two steps both are the step, also if several workers train, which read `a` before each other's writes.
struct CountedModel {
  Graph graph;
  Scope root{graph};
  Scope on0 = root.with_device("/job:ps/task:0"), on1 = root.with_device("/job:ps/task:1");
  Variable a = ops::variable(on0, "a", Tensor::scalar(0.0)), b = ops::variable(on1, "b", Tensor::scalar(0.0));
  Variable step = ops::create_global_step(on0);
  Output added_a = ops::assign_add(on0, a, ops::constant(on0, 1.0));
  Operation train = ops::group(
      root,
      {added_a.op(), ops::assign_add(on1, b, ops::sub(on1, ops::add(on1, a, ops::constant(on1, 1.0)), a)).op(),
       ops::assign_add(on0, step, ops::constant(on0, int64_t{1})).op()},
      "train");
  Output read_a = ops::identity(on0, a, "read_a"), read_b = ops::identity(on1, b, "read_b"),
         read_step = ops::identity(on0, step, "read_step");
};

// What one look at the model finds, between two steps.
struct CountedSteps {
  double a = -1, b = -1;
  int64_t step = -1;
  bool is_whole() const { return a == static_cast<double>(step) && b == a; }
};

// Sessions of the targets that are names of tasks are sessions on a TrainingCluster whose master is that task.
class SupervisedCluster {
 public:
  SupervisedCluster();
  ~SupervisedCluster();

  TrainingCluster& cluster() { return cluster_; }
  SimulatedNetwork& network() { return cluster_.network(); }
  SimulatedClock& clock() { return cluster_.clock(); }
  const std::string& logdir() const { return directory_.path(); }
  int sessions() const { return sessions_; }  // that were made so far

  // Lets time pass until `done`; false: it has not come about. The caller is AtWork.
  bool within(Seconds most, const std::function<bool()>& done) { return clock().run_until(done, most); }
  void pass(Seconds time) {
    within(time, [] { return false; });
  }
  // Kills the task's process; a new one begins after that time.
  void restart_after(const std::string& task, Seconds time);
  // Of the newest checkpoint; 0: there is none.
  int64_t saved_step() const;
  // A new session's look; nullopt: the model is not there, or cannot be reached for 20 s.
  std::optional<CountedSteps> look();

 private:
  TrainingCluster cluster_;
  testing::TemporaryDirectory directory_;
  std::atomic<int> sessions_{0};
};

struct TrainingProgramOptions {
  std::string task = kWorker;
  bool is_chief = true;
  Seconds save_model_secs{2};
  Seconds between_steps{0.25};
  Seconds max_wait_secs{120};
  bool is_monitored = false;  // in a monitored_training_session(), which replaces its sessions itself
};

// A program as users write it, on a thread of its own, as if it were the process of that task: it trains under a
// Supervisor, and under a new one when its session is lost. While its task is dead it does nothing.
class TrainingProgram {
 public:
  using Options = TrainingProgramOptions;
  TrainingProgram(SupervisedCluster& cluster, const Options& options);
  ~TrainingProgram();  // end(), and gives the thread a minute

  void end() { is_over_ = true; }  // after the step under way
  bool has_ended() const { return has_ended_; }
  int64_t steps() const { return steps_; }          // whose run has returned
  int64_t committed() const { return committed_; }  // whose run has failed, but which were committed
  int64_t unknown() const { return unknown_; }      // whose run has failed, and nobody said what became of them
  int losses() const { return losses_; }            // sessions that were lost
  // Of an error that is no AbortedError; the program has ended then. "": none.
  std::string error() const { return has_ended_ ? error_ : ""; }

 private:
  void run();
  void wait_for_task();
  std::string logdir() const;
  void train();
  void train_monitored();
  void make_step(Session& session, const CountedModel& model);

  SupervisedCluster& cluster_;
  const Options options_;
  std::atomic<bool> is_over_{false}, has_ended_{false};
  std::atomic<int64_t> steps_{0}, committed_{0}, unknown_{0};
  std::atomic<int> losses_{0};
  std::string error_;  // written before has_ended_
  std::thread thread_;
};

}  // namespace longhaul
