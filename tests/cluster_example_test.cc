// The training on a cluster as its user meets it: five processes on this machine, each of which is killed once, and
// examples/cluster.sh.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "examples/idx_dataset.h"
#include "longhaul/testing/needs_fixture.h"
#include "tests/cluster_checkpoints.h"
#include "tests/cluster_processes.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::ClusterProcesses;
using testing::expect_of_one_moment;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::saved_number;
using testing::step_of_checkpoint;

class ClusterExampleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LONGHAUL_NEEDS("fashion_mnist", fs::exists(examples::kFashionMnistDirectory),
                   "apt-get install dataset-fashion-mnist");
    std::string name = (fs::temp_directory_path() / "longhaul_cluster.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  std::string logdir() const { return directory_ + "/run"; }

  std::unique_ptr<ClusterProcesses> cluster(int64_t steps) const {
    return std::make_unique<ClusterProcesses>(
        CLUSTER_PROGRAM, directory_,
        std::vector<std::string>{"--logdir=" + logdir(), "--steps=" + std::to_string(steps), "--threads=1",
                                 "--save_model_secs=0.5", "--save_summaries_secs=1", "--max_wait_secs=60"});
  }

  std::string newest_checkpoint() const { return testing::newest_cluster_checkpoint(logdir()); }

  static double accuracy_of(const std::string& output) {
    std::smatch match;
    static const std::regex line(R"(done step=\d+ own_steps=\d+ restored_from=\d+ test_accuracy=([0-9.]+) )");
    if (std::regex_search(output, match, line)) return std::stod(match[1]);
    ADD_FAILURE() << "no last line in:\n" << output;
    return 0;
  }

  // Of the checkpoint that the log says was restored; -1: none.
  static int64_t restored_step(const std::string& log) {
    std::smatch match;
    static const std::regex line(R"(Restored model from \S+-(\d+)\n)");
    return std::regex_search(log, match, line) ? std::stoll(match[1]) : -1;
  }

  static std::vector<pid_t> started_by(const Process& script) {
    const std::string output = script.output();
    static const std::regex started(R"(cluster: \S+ is process (\d+))");
    std::vector<pid_t> processes;
    for (std::sregex_iterator line(output.begin(), output.end(), started), end; line != end; ++line)
      processes.push_back(static_cast<pid_t>(std::stoi((*line)[1])));
    return processes;
  }

  // Within a minute; it need not be a child of this process.
  static bool ends(pid_t process) {
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (handle < 0) return errno == ESRCH;
    pollfd end{.fd = handle, .events = POLLIN, .revents = 0};
    const int ended = poll(&end, 1, 60'000);
    close(handle);
    return ended == 1;
  }

  std::string directory_;
};

// First without an end, so that whoever is killed is killed in training; then to the end.
TEST_F(ClusterExampleTest, GoesOnAfterEachTaskHasBeenKilled) {
  const auto tasks = cluster(1'000'000'000);
  tasks->start_all();
  for (const char* task : {"chief-0", "worker-0", "worker-1"}) {
    ASSERT_TRUE(tasks->trains(task)) << task << "\n" << tasks->everything();
  }

  ASSERT_TRUE(tasks->kill("worker-1"));
  tasks->start("worker-1");
  ASSERT_TRUE(tasks->trains("worker-1")) << tasks->everything();
  EXPECT_THAT(tasks->process("chief-0").errors(), Not(HasSubstr("the session was lost"))) << "it is none of its tasks";

  ASSERT_TRUE(tasks->logs("chief-0", " was saved: step ", 3)) << tasks->everything();
  ASSERT_TRUE(tasks->kill("ps-1"));
  tasks->start("ps-1");
  ASSERT_TRUE(tasks->logs("chief-0", "Restored model from ")) << tasks->everything();
  EXPECT_THAT(tasks->process("chief-0").errors(),
              AllOf(HasSubstr("the session was lost: "), HasSubstr("/job:ps/replica:0/task:1")));
  for (const char* worker : {"worker-0", "worker-1"}) {
    ASSERT_TRUE(tasks->logs(worker, "the session was lost: ")) << tasks->everything();
  }
  const int saves = tasks->times_logged("chief-0", " was saved: step ");
  const int64_t before = step_of_checkpoint(newest_checkpoint());
  ASSERT_TRUE(tasks->logs("chief-0", " was saved: step ", saves + 2)) << tasks->everything();
  EXPECT_GT(step_of_checkpoint(newest_checkpoint()), before) << "no steps were made after the recovery";

  ASSERT_TRUE(tasks->kill("chief-0"));
  tasks->start("chief-0");
  ASSERT_TRUE(tasks->trains("chief-0")) << tasks->everything();
  EXPECT_THAT(tasks->process("chief-0").errors(),
              AllOf(HasSubstr("The model is already initialised"), Not(HasSubstr("Restored model from"))));

  EXPECT_EQ(tasks->stop_all(), 75) << tasks->everything();
  const std::string stopped_at = newest_checkpoint();
  ASSERT_FALSE(stopped_at.empty());
  expect_of_one_moment(stopped_at);

  const int64_t last = std::max<int64_t>(3000, step_of_checkpoint(stopped_at) + 300);
  const auto rest = cluster(last);
  rest->start_all();
  for (const char* task : {"chief-0", "worker-0", "worker-1"}) {
    EXPECT_EQ(rest->process(task).wait(), 0) << rest->everything();
  }
  EXPECT_THAT(rest->process("chief-0").errors(), HasSubstr("Restored model from " + stopped_at + "\n"));
  EXPECT_GE(accuracy_of(rest->process("chief-0").output()), 0.8);
  EXPECT_GE(step_of_checkpoint(newest_checkpoint()), last);
  expect_of_one_moment(newest_checkpoint());
  EXPECT_THAT(rest->process("chief-0").errors(), HasSubstr(" in 4 runs: "))
      << "started, without its ps, killed, to the end";
}

// By SIGTERM, as Slurm and Kubernetes ask, one after the other.
TEST_F(ClusterExampleTest, TasksThatAreAskedToStopGoWithoutALoss) {
  const auto tasks = cluster(1'000'000'000);
  tasks->start_all();
  for (const char* task : {"chief-0", "worker-0", "worker-1"}) {
    ASSERT_TRUE(tasks->trains(task)) << task << "\n" << tasks->everything();
  }

  tasks->process("worker-1").send(SIGTERM);
  EXPECT_EQ(tasks->process("worker-1").wait(), 75) << tasks->everything();
  const int saves = tasks->times_logged("chief-0", " was saved: step ");
  ASSERT_TRUE(tasks->logs("chief-0", " was saved: step ", saves + 2)) << "the others train on\n" << tasks->everything();
  for (const char* task : {"chief-0", "worker-0", "worker-1"}) {
    EXPECT_THAT(tasks->process(task).errors(), Not(HasSubstr("the session was lost"))) << task;
  }

  const int64_t before = step_of_checkpoint(newest_checkpoint());
  tasks->process("ps-1").send(SIGTERM);
  EXPECT_EQ(tasks->process("ps-1").wait(), 0) << tasks->everything();
  const int64_t saved = step_of_checkpoint(newest_checkpoint());
  EXPECT_GT(saved, before) << "nothing was saved before it went\n" << tasks->everything();
  EXPECT_THAT(tasks->process("ps-1").errors(), HasSubstr("sessions save the model"));
  tasks->start("ps-1");
  ASSERT_TRUE(tasks->logs("chief-0", "Restored model from ")) << tasks->everything();
  EXPECT_GE(restored_step(tasks->process("chief-0").errors()), saved);
  tasks->start("worker-1");
  EXPECT_TRUE(tasks->trains("worker-1")) << tasks->everything();
  EXPECT_EQ(tasks->stop_all(), 75) << tasks->everything();
  expect_of_one_moment(newest_checkpoint());
}

TEST_F(ClusterExampleTest, AloneItTrainsInOneProcess) {
  Process alone({CLUSTER_PROGRAM, "--logdir=" + logdir(), "--steps=20"}, directory_ + "/alone");
  ASSERT_EQ(alone.wait(), 0) << alone.errors();
  EXPECT_EQ(saved_number(newest_checkpoint(), "batches_seen_0"), 20);
}

TEST_F(ClusterExampleTest, ATaskThatTheClusterLacksIsNamed) {
  Process task({CLUSTER_PROGRAM, "--job=worker", "--task=2", "--worker_hosts=localhost:1,localhost:2"},
               directory_ + "/task");
  EXPECT_EQ(task.wait(), 1);
  EXPECT_THAT(task.errors(), AllOf(HasSubstr("--job=worker --task=2"), HasSubstr("2")));
}

TEST_F(ClusterExampleTest, OneCommandTrainsWithFiveProcesses) {
  Process script({"/bin/bash", CLUSTER_SCRIPT, "--program=" CLUSTER_PROGRAM, "--kill=worker-0@2",
                  "--logdir=" + logdir(), "--steps=3000", "--threads=1"},
                 directory_ + "/script");
  ASSERT_EQ(script.wait(), 0) << script.output() << script.errors();
  EXPECT_THAT(script.output(), AllOf(HasSubstr("chief-0  | done step="), HasSubstr("cluster: the chief is done"),
                                     HasSubstr("worker-1 | done step="),
                                     HasSubstr("cluster: worker-0 has ended with status 137 and is started again")));
  EXPECT_GE(accuracy_of(script.output()), 0.8);
  EXPECT_GE(step_of_checkpoint(newest_checkpoint()), 3000);
}

TEST_F(ClusterExampleTest, TheCommandEndsWhatItHasStarted) {
  Process script({"/bin/bash", CLUSTER_SCRIPT, "--program=" CLUSTER_PROGRAM, "--logdir=" + logdir(),
                  "--steps=1000000000", "--threads=1"},
                 directory_ + "/script");
  for (const char* task : {"chief-0 ", "worker-0", "worker-1"}) {
    ASSERT_TRUE(script.prints(std::string(task) + " | step ")) << script.output() << script.errors();
  }
  script.send(SIGTERM);
  EXPECT_EQ(script.wait(), 143) << script.output() << script.errors();
  const std::vector<pid_t> processes = started_by(script);
  EXPECT_EQ(processes.size(), 5u);
  for (const pid_t process : processes) EXPECT_EQ(::kill(process, 0), -1) << process;
  expect_of_one_moment(newest_checkpoint());
}

TEST_F(ClusterExampleTest, NoTaskOutlivesACommandThatIsKilled) {
  Process script({"/bin/bash", CLUSTER_SCRIPT, "--program=" CLUSTER_PROGRAM, "--logdir=" + logdir(),
                  "--steps=1000000000", "--threads=1"},
                 directory_ + "/script");
  for (const char* task : {"chief-0 ", "worker-0", "worker-1"}) {
    ASSERT_TRUE(script.prints(std::string(task) + " | step ")) << script.output() << script.errors();
  }
  const std::vector<pid_t> processes = started_by(script);
  ASSERT_EQ(processes.size(), 5u);
  script.send(SIGKILL);
  for (const pid_t process : processes) EXPECT_TRUE(ends(process)) << process << "\n" << script.output();
  expect_of_one_moment(newest_checkpoint());
}

}  // namespace
}  // namespace longhaul
