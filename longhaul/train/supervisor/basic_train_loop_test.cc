#include "longhaul/train/supervisor/basic_train_loop.h"

#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BasicTrainLoopTest : public SupervisorFixture {
 protected:
  // Without a logdir nothing but the loop waits, and so passes time.
  BasicTrainLoopTest() {
    options.clock = &passing;
    options.logdir.clear();
  }

  // Runs the step in session after session until it throws no more, and returns how many sessions that took.
  int sessions_of(const std::function<void(Session&)>& train_step) {
    Supervisor sv(options);
    int sessions = 0;
    const auto step_once = [&](Session& session) {
      ++sessions;
      train_step(session);
      sv.request_stop();
    };
    basic_train_loop(sv, step_once, loop);
    return sessions;
  }
  std::string error_of_loop(const std::function<void(Session&)>& train_step) {
    Supervisor sv(options);
    return error_of([&] { basic_train_loop(sv, train_step, loop); });
  }

  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  TrainLoopOptions loop{.session = {.start_standard_services = false}};
};

TEST_F(BasicTrainLoopTest, ItCallsUntilTheStop) {  // BL-1
  Supervisor sv(options);
  int calls = 0;
  basic_train_loop(sv, [&](Session&) {
    if (++calls == 3) sv.request_stop();
  });
  EXPECT_EQ(calls, 3);
}

TEST_F(BasicTrainLoopTest, AnyOtherErrorEndsIt) {  // BL-2
  int calls = 0;
  EXPECT_EQ(error_of_loop([&](Session&) {
              ++calls;
              throw FailedPreconditionError("Failed");
            }),
            "Failed");
  EXPECT_EQ(calls, 1);
}

TEST_F(BasicTrainLoopTest, ALostSessionIsReplaced) {  // BL-3
  int lost = 0;
  EXPECT_EQ(sessions_of([&](Session&) {
              if (++lost == 1) throw AbortedError("preempted");
              if (lost == 2) throw UnavailableError("gone");
            }),
            3);
}

TEST_F(BasicTrainLoopTest, ASaveOfTheProgramsOwnThatFailsIsNoLossOfTheSession) {
  int calls = 0;
  EXPECT_EQ(error_of_loop([&](Session&) {
              if (++calls == 1) throw DirectoryAwayError("the directory is gone");
              throw FailedPreconditionError("a second session");
            }),
            "the directory is gone");
}

TEST_F(BasicTrainLoopTest, AnErrorAfterRestartsEndsItToo) {  // BL-3
  int retries_left = 2;
  EXPECT_EQ(error_of_loop([&](Session&) {
              if (--retries_left >= 0) throw AbortedError("Aborted here");
              throw FailedPreconditionError("Failed Again");
            }),
            "Failed Again");
}

TEST_F(BasicTrainLoopTest, TheNewSessionGoesOnFromTheCheckpoint) {
  add_step();
  options.logdir = directory.path();
  options.clock = &clock;
  loop.restart.backoff = Seconds{0};
  Supervisor sv(options);
  std::vector<int64_t> steps;
  const auto train_step = [&](Session& session) {
    session.run(train);
    steps.push_back(session.run(step).item<int64_t>());
    if (steps.size() == 2) {
      sv.saver()->save(session, sv.save_path(), step);
      restart();  // the variables are gone with the session
      throw AbortedError("preempted");
    }
    if (steps.size() == 3) sv.request_stop();
  };
  basic_train_loop(sv, train_step, loop);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
}

TEST_F(BasicTrainLoopTest, ALongErrorIsLoggedWholeOnce) {
  const std::string beginning = "From /job:ps/replica:0/task:1:\nSession handle is not found: 99137dfeb89c4cae.";
  const std::string end = "Possibly this worker (\"/job:ps/replica:0/task:1\") just restarted. Make a new session";
  const LogRecorder log;
  bool is_lost = false;
  sessions_of([&](Session&) {
    if (!std::exchange(is_lost, true)) throw AbortedError(beginning + " " + end);
  });
  EXPECT_THAT(log.text(), HasSubstr("Error reported to Coordinator: ABORTED, " + beginning + " " + end));
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("the session was lost: From /job:ps/replica:0/task:1: Session handle is not found: "
                        "99137dfeb89c4cae. Possibly this worker ...\n"));
  EXPECT_EQ(log.text().find(end), log.text().rfind(end)) << log.text();
}

TEST_F(BasicTrainLoopTest, RestartsInARowAreLimited) {  // unlike BL-3
  loop.restart.max_restarts = 3;
  int sessions = 0;
  const LogRecorder log;
  EXPECT_EQ(error_of_loop([&](Session&) {
              ++sessions;
              throw AbortedError("again");
            }),
            "again");
  EXPECT_EQ(sessions, 4);
  EXPECT_THAT(log.text(), HasSubstr("after 3 restarts in a row, the limit"));
}

TEST_F(BasicTrainLoopTest, EachRestartWaitsTwiceAsLong) {  // unlike BL-3, unlike RC-10
  loop.restart.backoff = Seconds{10};
  loop.restart.max_backoff = Seconds{30};
  std::vector<double> times;
  const double start = passing.now().count();
  sessions_of([&](Session&) {
    times.push_back(passing.now().count() - start);
    if (times.size() < 5) throw AbortedError("again");
  });
  EXPECT_THAT(times, ElementsAre(0, 10, 30, 60, 90));
}

TEST_F(BasicTrainLoopTest, NegativeNumbersOfRestartsAreRefusedByName) {
  loop.restart.max_backoff = Seconds{-1};
  EXPECT_THAT(error_of_loop([](Session&) { FAIL(); }), HasSubstr("restart.max_backoff is -1"));
  loop.restart = {.healthy_after = Seconds{-1}};
  EXPECT_THAT(error_of_loop([](Session&) { FAIL(); }), HasSubstr("restart.healthy_after is -1"));
}

TEST_F(BasicTrainLoopTest, ASessionThatLastedEndsTheRow) {
  loop.restart.max_restarts = 1;
  loop.restart.healthy_after = Seconds{100};
  int sessions = 0;
  EXPECT_EQ(sessions_of([&](Session&) {
              passing.advance(Seconds{100});
              if (++sessions < 5) throw AbortedError("once in a while");
            }),
            5);
}

TEST_F(BasicTrainLoopTest, ASlowStartIsNoSessionThatLasted) {
  loop.restart.max_restarts = 2;
  loop.restart.healthy_after = Seconds{100};
  install_session_factory([this](const std::string&, Graph& made_for, const SessionOptions&) {
    passing.advance(Seconds{1000});
    return make_scripted_session(made_for, server);
  });
  int calls = 0;
  const std::string error = error_of_loop([&](Session&) {
    if (++calls > 10) throw InternalError("there is no limit");
    throw AbortedError("preempted");
  });
  EXPECT_EQ(error, "preempted");
  EXPECT_EQ(calls, 3);
}

TEST_F(BasicTrainLoopTest, AStopEndsTheWait) {
  const LogRecorder log;
  options.clock = &clock;  // stands still: only the stop can end the wait
  Supervisor sv(options);
  std::thread stopper([&] {
    eventually([&] { return log.text().find("restart 1 begins in 1 s") != std::string::npos; });
    sv.request_stop();
  });
  int calls = 0;
  const auto fails = [&](Session&) {
    ++calls;
    throw AbortedError("preempted");
  };
  basic_train_loop(sv, fails, loop);
  stopper.join();
  EXPECT_EQ(calls, 1);
}

TEST_F(BasicTrainLoopTest, ASessionLostAfterAStopIsNotReplaced) {
  Supervisor sv(options);
  int calls = 0;
  EXPECT_THROW(basic_train_loop(
                   sv,
                   [&](Session&) {
                     ++calls;
                     sv.request_stop();
                     throw AbortedError("while stopping");
                   },
                   loop),
               AbortedError);
  EXPECT_EQ(calls, 1);
}

// All tasks of a cluster are preempted at once, and one of them is faster.
TEST_F(BasicTrainLoopTest, ASessionLostInAPreemptionIsLeftToTheNextStart) {
  const LogRecorder log;
  Preemption preemption({.clock = &passing});
  options.chief.preemption = &preemption;
  Supervisor sv(options);
  int calls = 0;
  basic_train_loop(
      sv,
      [&](Session&) {
        ++calls;
        preemption.preempt(Seconds{9});
        sv.wait_for_stop();
        throw AbortedError("the ps has gone");
      },
      loop);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(preemption.exit_status(), kPreemptedStatus);
  EXPECT_THAT(log.text(), HasSubstr("the session was lost while the preempted training ended; its next start "
                                    "continues: the ps has gone"));
}

TEST_F(BasicTrainLoopTest, AServicesLostSessionIsReplacedToo) {
  Supervisor sv(options);
  int sessions = 0;
  basic_train_loop(
      sv,
      [&](Session&) {
        if (++sessions == 2) return sv.request_stop();
        sv.loop(std::nullopt, [] { throw UnavailableError("the server is gone"); });
        sv.wait_for_stop();
        throw AbortedError("as a consequence");
      },
      loop);
  EXPECT_EQ(sessions, 2);
}

}  // namespace
}  // namespace longhaul
