#include "longhaul/console/restarts/restarting_run.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::console {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RestartingRunTest : public ::testing::Test {
 protected:
  int run(const std::string& script, int max_restarts = 5) {
    const RestartOptions options{.max_restarts = max_restarts,
                                 .first_pause = Seconds{0.01},
                                 .longest_pause = Seconds{0.02},
                                 .grace = Seconds{0.5}};
    return run_restarting({"sh", "-c", script}, options, [this](const std::string& text, const Json& json) {
      said_.push_back(text);
      events_.push_back(json["event"]);
    });
  }
  // A script that counts its starts in a file, and then does what is written for this one.
  std::string at_start(const std::string& cases) const {
    return "echo x >> " + directory_.file("starts") + "; case $(wc -l < " + directory_.file("starts") + ") in " +
           cases + " esac";
  }
  size_t starts() const {
    const std::string text = read_file(FileSystem::real(), directory_.file("starts"));
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  const testing::TemporaryDirectory directory_;
  std::vector<std::string> said_, events_;
};

TEST_F(RestartingRunTest, EndsWithTheProgram) {
  EXPECT_EQ(run("exit 0"), 0);
  EXPECT_THAT(events_, ElementsAre("started", "ended", "finished"));
  EXPECT_EQ(run("exit 2"), 2);
  EXPECT_THAT(said_, Contains(HasSubstr("exit status 2 is wrong usage")));
}

TEST_F(RestartingRunTest, APauseThatIsNoNumberIsNone) {
  const RestartOptions options{.max_restarts = 1, .first_pause = Seconds{NAN}, .longest_pause = Seconds{NAN}};
  EXPECT_EQ(run_restarting({"sh", "-c", "exit 75"}, options, {}), 75);
}

TEST_F(RestartingRunTest, StartsAgainAfterAPreemptionAndACrash) {
  EXPECT_EQ(run(at_start("1) exit 75;; 2) kill -SEGV $$;; 3) exit 1;; *) exit 0;;")), 0);
  EXPECT_EQ(starts(), 4u);
  EXPECT_THAT(said_.back(), HasSubstr("4 starts in "));
  EXPECT_THAT(said_.back(), HasSubstr("exit status 75, signal 11 (Segmentation fault); it ends with exit status 0"));
}

TEST_F(RestartingRunTest, TheBudgetEnds) {
  EXPECT_EQ(run(at_start("*) kill -KILL $$;;"), 2), 128 + SIGKILL);
  EXPECT_EQ(starts(), 3u);
  EXPECT_THAT(said_, Contains(HasSubstr("2 restarts in a row are used up")));
}

TEST_F(RestartingRunTest, AfterAStopSignalNothingIsStartedAgain) {
  // The program tells this process to stop, as a scheduler would, and itself ends by asking for another start.
  EXPECT_EQ(run(at_start("*) trap 'exit 75' TERM; kill -TERM $PPID; while :; do sleep 0.01; done;;")), 75);
  EXPECT_EQ(starts(), 1u);
  EXPECT_THAT(said_, Contains(HasSubstr("signal 15 (Terminated) is passed on to the program, which is not started")));
  EXPECT_THAT(said_, Contains(HasSubstr("a stop signal was received")));
}

// Sends this process a signal, as somebody else would.
class LaterSignal {
 public:
  LaterSignal(int signal, time_t seconds) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = signal;
    ::timer_create(CLOCK_MONOTONIC, &event, &timer_);
    const itimerspec time{.it_interval = {0, 0}, .it_value = {seconds, 0}};
    ::timer_settime(timer_, 0, &time, nullptr);
  }
  ~LaterSignal() { ::timer_delete(timer_); }

 private:
  timer_t timer_{};
};

TEST_F(RestartingRunTest, AStopSignalEndsAPause) {
  const Seconds began = Clock::real().now();
  const LaterSignal stop(SIGTERM, 3);
  EXPECT_EQ(run_restarting({"sh", "-c", "exit 75"}, {.first_pause = Seconds{100}}, {}), 75);
  EXPECT_LT(Clock::real().now() - began, Seconds{60});
}

TEST_F(RestartingRunTest, OtherSignalsArePassedOnAndStopNothing) {
  EXPECT_EQ(run(at_start("1) trap 'exit 75' USR2; kill -USR2 $PPID; while :; do sleep 0.01; done;; *) exit 0;;")), 0);
  EXPECT_EQ(starts(), 2u);
}

TEST_F(RestartingRunTest, WhatIsLeftBehindEndsBeforeTheNextStart) {
  const std::string pid = directory_.file("pid");
  EXPECT_EQ(run(at_start("1) trap '' TERM; sleep 100 & echo $! > " + pid + "; exit 75;; *) exit 0;;")), 0);
  const pid_t left = std::stoi(read_file(FileSystem::real(), pid));
  EXPECT_EQ(::kill(left, 0), -1) << "it still runs";
}

TEST_F(RestartingRunTest, WhatCannotBeStartedIsWrongUsage) {
  EXPECT_THROW(run_restarting({"./no_such_program"}, {}, {}), InvalidArgumentError);
  EXPECT_THROW(run_restarting({}, {}, {}), InvalidArgumentError);
}

TEST_F(RestartingRunTest, TheProgramHasItsUsualSignals) {
  EXPECT_EQ(run("kill -TERM $$; exit 7", 0), 128 + SIGTERM) << "not blocked in it";
}

}  // namespace
}  // namespace longhaul::console
