// A training as a process whose surroundings are hard on it: kills before its first step, crashes of its own, closed
// descriptors, pipes that nobody reads, limits of file sizes.
#include <sys/resource.h>

#include <fstream>
#include <iterator>

#include "tests/preemption_fixture.h"

namespace longhaul {
namespace {

// A sanitizer's handler, which comes after ours, ends the process with a status of its own.
int status_of_death_by(int signal) {
#ifdef __SANITIZE_ADDRESS__
  if (signal != SIGABRT) return 1;
#endif
  return 128 + signal;
}

using ::testing::HasSubstr;
using ::testing::Not;

class SignalProcessTest : public PreemptionProcessTest {
 protected:
  static Words by_bash(const std::string& command) { return {"/bin/bash", "-c", command + " exec \"$0\" \"$@\""}; }
  std::string all_bytes() const {
    std::string bytes;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(logdir())) {
      std::ifstream file(entry.path(), std::ios::binary);
      bytes.append(std::istreambuf_iterator<char>(file), {});
    }
    return bytes;
  }
  // As its state file says.
  int64_t newest_of_this_run() const {
    const std::string newest = read_checkpoint_state(FileSystem::real(), logdir()).state.model_checkpoint_path;
    return newest.empty() ? -1 : split_step(newest).step.value_or(-1);
  }
  bool has_checkpoint(int64_t step) const {
    return checkpoint_exists(FileSystem::real(), logdir() + "/model.ckpt-" + std::to_string(step));
  }
};

TEST_P(SignalProcessTest, KillsBeforeTheFirstStepNeverGoBackBeyondTheNewestCheckpoint) {
  const int64_t newest = make_checkpoints();
  for (int i = 0; i < 20; ++i) {
    const auto training = launch({"WAITS_BEFORE_STEPS=60000"});
    if (i % 2 == 0) {
      EXPECT_TRUE(training->prints("begins at step")) << training->errors();
      EXPECT_EQ(first_step(*training), newest) << "after " << i << " kills";
    } else {
      training->runs_for(std::chrono::milliseconds(40 * i));
    }
    training->send(SIGKILL);
    training->wait();
  }
  expect_to_go_on_from(newest);
}

TEST_P(SignalProcessTest, FatalSignalsFromOutsideAreKillsToo) {
  const int64_t newest = make_checkpoints();
  for (int i = 0; i < 3; ++i) {
    const auto training = start({"WAITS_BEFORE_STEPS=60000"});
    training->send(SIGSEGV);
    EXPECT_EQ(training->wait(), status_of_death_by(SIGSEGV));
  }
  expect_to_go_on_from(newest);
}

TEST_P(SignalProcessTest, TwoCrashesOfItsOwnFallBackToTheCheckpointBeforeWhichKeepsTheOneThatIsSkipped) {
  const int64_t newest = make_checkpoints();
  for (const char* way : {"fault", "terminate"}) {
    const auto training = start({std::string("DIES_BY=") + way});
    EXPECT_EQ(first_step(*training), newest);
    EXPECT_EQ(training->wait(), status_of_death_by(std::string(way) == "fault" ? SIGSEGV : SIGABRT));
  }
  const auto again = start({"STEP_TAKES_MS=50"});
  EXPECT_LT(first_step(*again), newest);
  EXPECT_THAT(again->errors(), HasSubstr("crashed with signal 6"));
  EXPECT_THAT(again->errors(), HasSubstr("model.ckpt-" + std::to_string(newest) + " is skipped"));
  ASSERT_TRUE(again->runs_for(std::chrono::milliseconds(100)));  // a step at least: the one restored is saved already
  again->send(SIGUSR2);
  ASSERT_TRUE(soon([&] { return newest_of_this_run() < newest; })) << again->errors();
  for (int i = 0; i < 7; ++i) {
    const int64_t before = newest_of_this_run();
    ASSERT_TRUE(again->runs_for(std::chrono::milliseconds(100)));  // a step at least: the one before is saved already
    again->send(SIGUSR2);
    ASSERT_TRUE(soon([&] { return newest_of_this_run() > before; }));
    ASSERT_LT(newest_of_this_run(), newest) << "the test is too slow";
    EXPECT_TRUE(has_checkpoint(newest)) << "after " << i + 2 << " saves";
  }
  again->send(SIGTERM);
  EXPECT_EQ(again->wait(), kPreempted) << again->errors();
}

TEST_P(SignalProcessTest, WithClosedDescriptorsItTrainsAndIsStoppedAndItsFilesHaveNothingOfWhatItPrints) {
  const auto training = launch({"PRINTS_STEPS=1"}, by_bash("exec <&- >&- 2>&-;"));
  const int64_t first = wait_for_checkpoint_after(-1);
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(200)));
  training->send(SIGUSR2);
  wait_for_checkpoint_after(first);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted);
  EXPECT_EQ(training->output(), "");
  expect_whole(newest_step());
  EXPECT_THAT(all_bytes(), Not(HasSubstr("step now is")));
}

TEST_P(SignalProcessTest, WhereNobodyReadsWhatItPrintsItGoesOn) {
  const auto training =
      start({"PRINTS_STEPS=1", "LONGHAUL_LOG_LEVEL=info"}, by_bash("exec > >(head -1) 2> >(head -1 >/dev/null);"));
  int64_t step = wait_for_checkpoint_after(-1);
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(500)));
  training->send(SIGUSR2);
  step = wait_for_checkpoint_after(step);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted);
  EXPECT_GE(newest_step(), step);
}

TEST_P(SignalProcessTest, ASaveBeyondTheLimitOfFileSizesFailsAndIsTriedAgain) {
  const auto training = start({}, by_bash("ulimit -S -f 512;"));
  EXPECT_TRUE(soon([&] { return training->errors().find("File too large") != std::string::npos; }))
      << training->errors();
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(200)));
  EXPECT_EQ(newest_step(), -1);
  struct rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  ASSERT_EQ(prlimit(training->pid(), RLIMIT_FSIZE, &none, nullptr), 0);
  wait_for_checkpoint_after(-1);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  expect_whole(newest_step());
}

INSTANTIATE_TEST_SUITE_P(, SignalProcessTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace longhaul
