// The example's cluster on a network whose lines are cut: each task is on a machine of its own, which is a network
// namespace. In each checkpoint the steps on one ps must agree with the counts of the replicas on the other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "examples/idx_dataset.h"
#include "longhaul/cluster/certificates/cluster_certificates.h"
#include "longhaul/cluster/spec/cluster_spec.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/cluster_checkpoints.h"
#include "tests/cluster_processes.h"
#include "tests/network_namespaces.h"

namespace longhaul {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::ClusterProcesses;
using ::testing::HasSubstr;
using testing::NetworkNamespaces;
using ::testing::Not;

constexpr char kSessionLost[] = "the session was lost: ", kChief[] = "chief-0", kWorker[] = "worker-1", kPs[] = "ps-1";
constexpr milliseconds kBriefly{1000}, kPaused{2000}, kLate{300}, kLong{10'000}, kNoticed{15'000};

class ClusterLinesTest : public ::testing::Test {
 protected:
  using Act = std::function<void()>;

  void SetUp() override {
    static const auto* const missing = new std::string(NetworkNamespaces::missing());
    LONGHAUL_NEEDS("network_namespaces", missing->empty(), *missing);
    LONGHAUL_NEEDS("network_namespaces", std::filesystem::exists(examples::kFashionMnistDirectory),
                   "apt-get install dataset-fashion-mnist");
    network_ = std::make_unique<NetworkNamespaces>(ClusterProcesses::tasks());
    start_cluster();
  }

  void start_cluster() {
    std::vector<std::string> at;
    for (const std::string& task : ClusterProcesses::tasks()) at.push_back(network_->host(task) + ":2222");
    const ClusterSpec spec({{"chief", {at[0]}}, {"worker", {at[1], at[2]}}, {"ps", {at[3], at[4]}}});
    write_cluster_certificates(spec, {.directory = directory_.file("certificates")});
    cluster_ = std::make_unique<ClusterProcesses>(
        CLUSTER_PROGRAM, directory_.path(),
        std::vector<std::string>{"--logdir=" + logdir(), "--certificates=" + directory_.file("certificates"),
                                 "--steps=1000000000", "--threads=1", "--save_model_secs=0.5", "--max_wait_secs=60"},
        testing::ClusterMachines{
            .addresses = at,
            .wrapper = {"/usr/bin/setpriv", "--pdeathsig", "KILL"},  // with the test, however that ends
            .start_on = [this](const std::string& task, const Act& start) { network_->on(task, start); }});
    cluster_->start_all();
    for (const char* task : kReplicas) ASSERT_TRUE(cluster_->trains(task)) << task << "\n" << cluster_->everything();
    for (int number = 0; number < 3; ++number) expect_steps_of(number);
  }

  std::string logdir() const { return directory_.file("run"); }
  int lost(const char* task) const { return cluster_->times_logged(task, kSessionLost); }
  int lost_by_all() const { return lost("chief-0") + lost("worker-0") + lost("worker-1"); }

  // Of a moment after this call.
  std::string next_checkpoint() {
    const int saved = cluster_->times_logged(kChief, kWasSaved);
    EXPECT_TRUE(cluster_->logs(kChief, kWasSaved, saved + 2)) << cluster_->everything();
    return testing::newest_cluster_checkpoint(logdir());
  }

  // The replica makes steps from now on, within a minute for some checkpoints.
  void expect_steps_of(int number) {
    const std::string count = "batches_seen_" + std::to_string(number);
    const int64_t now = testing::saved_number(next_checkpoint(), count);
    const auto end = steady_clock::now() + seconds(60);
    while (testing::saved_number(next_checkpoint(), count) <= now) {
      ASSERT_LT(steady_clock::now(), end) << count << " stays at " << now << "\n" << cluster_->everything();
      ASSERT_FALSE(HasFailure());
    }
  }

  static milliseconds since(steady_clock::time_point moment) {
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - moment);
  }
  void let_pass(milliseconds time) { EXPECT_TRUE(cluster_->process("ps-0").runs_for(time)); }

  // On a machine that is busy a second may become two, which loses a session: the kernel repeats a packet after 1.4 s,
  // then after 3 s, and gives a connection up after 2 s (TCP_USER_TIMEOUT). That says nothing here: then once more.
  void expect_nothing_lost_in(milliseconds time, const Act& begin, const Act& end) {
    for (int trial = 0; trial < 10; ++trial) {
      const int before = lost_by_all();
      const auto start = steady_clock::now();
      begin();
      let_pass(time);
      end();
      const bool was_brief = since(start) < time + kLate;
      for (int number = 0; number < 3; ++number) expect_steps_of(number);
      ASSERT_FALSE(HasFailure());
      if (!was_brief) continue;
      EXPECT_EQ(lost_by_all(), before) << cluster_->everything();
      return;
    }
    ADD_FAILURE() << "no fault took less than " << (time + kLate).count() << " ms";
  }

  // Meanwhile the others train.
  void expect_the_worker_alone_to_lose_its_session(const Act& begin, const Act& end) {
    const int before = lost(kWorker);
    const auto start = steady_clock::now();
    begin();
    expect_steps_of(0);
    expect_steps_of(1);
    let_pass(kLong - since(start));
    end();
    ASSERT_TRUE(cluster_->logs(kWorker, kSessionLost, before + 1)) << cluster_->everything();
    expect_steps_of(2);
    EXPECT_EQ(lost("chief-0") + lost("worker-0"), 0) << cluster_->everything();
  }

  void expect_all_to_lose_their_sessions(const Act& begin, const Act& end) {
    std::map<std::string, int> before;
    for (const char* task : kReplicas) before[task] = lost(task);
    const auto start = steady_clock::now();
    begin();
    for (const char* task : kReplicas) {
      ASSERT_TRUE(cluster_->logs(task, kSessionLost, before[task] + 1)) << task << "\n" << cluster_->everything();
    }
    EXPECT_LT(since(start), kNoticed);
    let_pass(kLong - since(start));
    end();
    for (int number = 0; number < 3; ++number) expect_steps_of(number);
  }

  // The ps tasks kept the model all the time.
  void expect_nothing_lost_at_the_end() {
    EXPECT_EQ(cluster_->stop_all(), 75) << cluster_->everything();
    EXPECT_THAT(cluster_->process(kChief).errors(), Not(HasSubstr("Restored model from")));
    testing::expect_of_one_moment(testing::newest_cluster_checkpoint(logdir()));
  }

  static constexpr const char* kReplicas[] = {"chief-0", "worker-0", "worker-1"};
  static constexpr char kWasSaved[] = " was saved: step ";

  const testing::TemporaryDirectory directory_;
  std::unique_ptr<NetworkNamespaces> network_;
  std::unique_ptr<ClusterProcesses> cluster_;
};

TEST_F(ClusterLinesTest, AFaultOfASecondLosesNothing) {
  expect_nothing_lost_in(kBriefly, [&] { network_->cut(kWorker); }, [&] { network_->mend(kWorker); });
  expect_nothing_lost_at_the_end();
}

// Of a process: the network loses nothing meanwhile, so it may take nearly as long as the limit, 2.4 s.
TEST_F(ClusterLinesTest, APauseOfTwoSecondsLosesNothing) {
  expect_nothing_lost_in(
      kPaused, [&] { cluster_->process(kWorker).send(SIGSTOP); }, [&] { cluster_->process(kWorker).send(SIGCONT); });
  expect_nothing_lost_at_the_end();
}

TEST_F(ClusterLinesTest, AWorkerThatIsAwayForTenSecondsJoinsAgain) {
  expect_the_worker_alone_to_lose_its_session([&] { network_->cut(kWorker); }, [&] { network_->mend(kWorker); });
  expect_the_worker_alone_to_lose_its_session([&] { cluster_->process(kWorker).send(SIGSTOP); },
                                              [&] { cluster_->process(kWorker).send(SIGCONT); });
  expect_nothing_lost_at_the_end();
}

TEST_F(ClusterLinesTest, APsThatIsCutOffForTenSecondsKeepsTheModel) {
  expect_all_to_lose_their_sessions([&] { network_->cut(kPs); }, [&] { network_->mend(kPs); });
  expect_all_to_lose_their_sessions([&] { network_->deafen(kPs); }, [&] { network_->mend(kPs); });
  expect_nothing_lost_at_the_end();
  EXPECT_THAT(cluster_->process(kChief).errors(), HasSubstr("The model is already initialised: nothing is restored."));
}

}  // namespace
}  // namespace longhaul
