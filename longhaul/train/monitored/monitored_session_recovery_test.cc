#include <thread>

#include "longhaul/train/monitored/monitored_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RecoveryTest : public MonitoredFixture {
 protected:
  // `fetched`, but the session is lost by it as long as `losses` lasts.
  Output unreliable(const Output& fetched) {
    const Operation may_fail = code([this] {
      if (losses-- > 0) throw AbortedError("preempted");
    });
    return ops::identity(root.with_control_dependencies({may_fail}), fetched);
  }
  void save(MonitoredSession& session) {
    session.run_step_fn(
        [&](StepContext& context) { scaffold->saver()->save(context.session(), directory.file("model.ckpt"), step); });
  }
  int losses = 0;
};

TEST_F(RecoveryTest, ALostSessionIsReplacedAndTheRunRepeated) {  // MR-1
  add_hook();
  const Output step_now = unreliable(step);
  MonitoredSession session(options);
  for (losses = 1; sessions < 2;) EXPECT_EQ(session.run(step_now).item<int64_t>(), 0);
  EXPECT_THAT(calls, ElementsAre("begin", "after_create_session", "before_run", "after_create_session", "before_run",
                                 "after_run"));
}

TEST_F(RecoveryTest, EachResultIsDeliveredWhateverIsLostBetween) {  // MR-2
  std::vector<int64_t> given;
  int left = 0;  // of the session's runs: the first has one, and each further one more
  const std::vector<int64_t> all{51, 42, 33, 24, 11, 0};
  const Output next = ops::host_function(root, {}, {kInt64}, [&](const std::vector<Tensor>&) {
                        if (left-- == 0) throw AbortedError("preempted");
                        return std::vector<Tensor>{Tensor::scalar(all[given.size()])};
                      }).output();
  on_session = [&] {
    if (sessions == 3) throw InvalidArgumentError("there are no more sessions");
    left = sessions + 1;
  };
  MonitoredSession session(options);
  while (given.size() < all.size()) given.push_back(session.run(next).item<int64_t>());
  EXPECT_EQ(given, all);
  EXPECT_EQ(sessions, 3);
  EXPECT_EQ(error_of([&] { session.run(next); }), "there are no more sessions");
  EXPECT_TRUE(session.should_stop());
}

TEST_F(RecoveryTest, ASessionLostAsItIsInitialisedIsMadeAgain) {  // MR-3
  int tries = 0;
  *scaffold = Scaffold({.init_fn = [&](const Scaffold&, Session&) {
    if (++tries == 1) throw AbortedError("preempted");
  }});
  MonitoredSession session(options);
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(train_once(session), 1);
}

TEST_F(RecoveryTest, ASessionLostAsAHookIsToldOfItIsMadeAgain) {  // MR-1
  const auto hook = add_hook();
  hook->on_create = [&](Session&) {
    if (sessions == 1) throw UnavailableError("gone");
  };
  const MonitoredSession session(options);
  EXPECT_EQ(sessions, 2);
}

TEST_F(RecoveryTest, WithoutCheckpointsItStartsAfresh) {  // MR-4
  for (const bool unavailable : {false, true}) {
    const Operation fails_once = code([&] {
      if (losses-- <= 0) return;
      if (unavailable) throw UnavailableError("gone");
      throw AbortedError("preempted");
    });
    const Output step_after =
        ops::assign_add(root.with_control_dependencies({fails_once}), step, ops::constant(root, int64_t{1}));
    MonitoredSession session(options);
    EXPECT_EQ(session.run(step_after).item<int64_t>(), 1);
    EXPECT_EQ(session.run(step_after).item<int64_t>(), 2);
    losses = 1;
    EXPECT_EQ(session.run(step_after).item<int64_t>(), 1);
    EXPECT_EQ(session.run(step_after).item<int64_t>(), 2);
  }
}

TEST_F(RecoveryTest, WithCheckpointsItGoesOnFromTheLastOne) {  // MR-4
  const Output loses = unreliable(step);
  MonitoredSession session(options);
  for (int64_t i = 1; i <= 2; ++i) {
    EXPECT_EQ(train_once(session), i);
    save(session);
  }
  losses = 1;
  session.run(loses);
  EXPECT_EQ(train_once(session), 3);
  EXPECT_EQ(train_once(session), 4);
}

TEST_F(RecoveryTest, ASessionLostByAThreadIsReplacedAfterTheRun) {  // MR-5
  const auto hook = add_hook();
  const Output answer = ops::host_function(root, {}, {kInt64}, [&](const std::vector<Tensor>&) {
                          if (sessions == 1) report(hook->coord, [] { throw AbortedError("preempted"); });
                          return std::vector<Tensor>{Tensor::scalar<int64_t>(42)};
                        }).output();
  MonitoredSession session(options);
  EXPECT_EQ(session.run(answer).item<int64_t>(), 42);
  EXPECT_FALSE(session.should_stop());
  EXPECT_EQ(sessions, 2);
  EXPECT_EQ(session.run(answer).item<int64_t>(), 42);
}

TEST_F(RecoveryTest, AnotherErrorOfAThreadEndsTheTraining) {  // MR-5
  const auto hook = add_hook();
  MonitoredSession session(options);
  report(hook->coord, [] { throw UnknownError("some other"); });
  EXPECT_TRUE(session.should_stop());
  EXPECT_EQ(sessions, 1);
  EXPECT_THROW(session.close(), UnknownError);
}

TEST_F(RecoveryTest, ARunThatFailsBecauseAThreadLostTheSessionIsRepeated) {  // MR-5
  const auto hook = add_hook();
  const Operation waits = code([&] {
    if (sessions > 1) return;
    report(hook->coord, [] { throw AbortedError("preempted"); });
    throw CancelledError("the coordinator has stopped");
  });
  MonitoredSession session(options);
  session.run(waits);
  EXPECT_EQ(sessions, 2);
  EXPECT_FALSE(session.should_stop());
}

TEST_F(RecoveryTest, AnErrorOfARunDoesNotStopTheThreads) {  // MR-6
  const auto hook = add_hook();
  const Operation failing = code([] { throw UnknownError("this run only"); });
  MonitoredSession session(options);
  EXPECT_THROW(session.run(failing), UnknownError);
  EXPECT_FALSE(hook->coord.should_stop());
  EXPECT_FALSE(session.should_stop());
  EXPECT_EQ(train_once(session), 1);
}

TEST_F(RecoveryTest, CloseStopsTheThreadsAlsoAfterAnError) {  // MR-6
  const Operation failing = code([] { throw UnknownError("failed"); });
  for (const bool fails : {false, true}) {
    std::vector<std::shared_ptr<CoordinatedThread>> threads;
    options.hooks.clear();
    const auto hook = add_hook();
    hook->on_create = [&](Session&) {
      for (int i = 0; i < 3; ++i) {
        threads.push_back(hook->coord.start_thread("busy", [coord = hook->coord] {
          while (!coord.should_stop()) std::this_thread::yield();
        }));
      }
    };
    MonitoredSession session(options);
    const std::string error = error_of([&] {
      session.monitor([&] {
        if (fails) session.run(failing);
      });
    });
    EXPECT_EQ(error, fails ? "failed" : "");
    for (const auto& thread : threads) EXPECT_TRUE(thread->finished());
  }
}

TEST_F(RecoveryTest, AThreadsErrorBeforeTheLossComesOut) {
  const auto hook = add_hook();
  const Output loses = unreliable(step);
  MonitoredSession session(options);
  report(hook->coord, [] { throw InvalidArgumentError("first"); });
  losses = 1;
  EXPECT_EQ(error_of([&] { session.run(loses); }), "first");
}

TEST_F(RecoveryTest, AClosedOneStopsAndClosesAgain) {  // MR-8
  MonitoredSession session(options);
  EXPECT_FALSE(session.should_stop());
  EXPECT_EQ(&session.graph(), &graph);
  session.close();
  EXPECT_TRUE(session.should_stop());
  session.close();
}

TEST_F(RecoveryTest, ASingularOneThrowsThatItIsLost) {  // MR-9
  const Output loses = unreliable(step);
  losses = 1;
  SingularMonitoredSession session({.graph = &graph});
  EXPECT_THROW(session.run(loses), AbortedError);
  EXPECT_EQ(session.raw_session(), last_session);
  EXPECT_EQ(session.raw_session()->run(step).item<int64_t>(), 0);
  session.close();
  EXPECT_EQ(session.raw_session(), nullptr);
  EXPECT_EQ(sessions, 1);
}

TEST_F(RecoveryTest, ASingularOneEndsWellWithItsInputAndThrowsItsThreadsErrors) {  // MR-9
  const auto hook = std::make_shared<RecordingHook>(&calls);
  {
    SingularMonitoredSession session({.graph = &graph, .hooks = {hook}});
    session.monitor([] { throw OutOfRangeError("no more"); });
    EXPECT_EQ(calls.back(), "end");
  }
  SingularMonitoredSession session({.graph = &graph, .hooks = {hook}});
  const auto body = [&] {
    report(hook->coord, [] { throw AbortedError("in a thread"); });
    EXPECT_TRUE(session.should_stop());
  };
  EXPECT_EQ(error_of([&] { session.monitor(body); }), "in a thread");
}

TEST_F(RecoveryTest, RestartsInARowAreLimited) {  // unlike MR-1
  options.restart.max_restarts = 3;
  const Output loses = unreliable(step);
  losses = 100;
  MonitoredSession session(options);
  const LogRecorder log;
  EXPECT_THAT(error_of([&] { session.run(loses); }), HasSubstr("preempted"));
  EXPECT_EQ(sessions, 4);
  EXPECT_THAT(log.text(), HasSubstr("after 3 restarts in a row, the limit"));
  EXPECT_TRUE(session.should_stop());
}

TEST_F(RecoveryTest, EachRestartWaitsTwiceAsLong) {  // unlike MR-1, unlike RC-10
  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  options.coordinator = Coordinator({.clock = &passing});
  options.restart = {.backoff = Seconds{10}, .max_backoff = Seconds{30}};
  std::vector<double> times;
  const double start = passing.now().count();
  on_session = [&] { times.push_back(passing.now().count() - start); };
  const Output loses = unreliable(step);
  MonitoredSession session(options);
  losses = 4;
  session.run(loses);
  EXPECT_THAT(times, ElementsAre(0, 10, 30, 60, 90));
}

TEST_F(RecoveryTest, AStopDuringTheWaitEndsItWell) {
  add_hook();
  options.restart.backoff = Seconds{1};  // of a clock that stands still
  const Output loses = unreliable(step);
  losses = 100;
  MonitoredSession session(options);
  const LogRecorder log;
  std::thread stopper([&] {
    eventually([&] { return log.text().find("restart 1 begins in 1 s") != std::string::npos; });
    coordinator.request_stop();
  });
  session.monitor([&] { session.run(loses); });
  stopper.join();
  EXPECT_EQ(sessions, 1);
  EXPECT_EQ(calls.back(), "before_run");  // there is no session to end with
}

TEST_F(RecoveryTest, AStopOfAHookHoldsThoughTheSessionIsLost) {
  const auto hook = add_hook();
  hook->on_after = [](SessionRunContext& context, const SessionRunValues&) { context.request_stop(); };
  MonitoredSession session(options);
  session.run(train);
  report(hook->coord, [] { throw AbortedError("preempted"); });
  EXPECT_TRUE(session.should_stop());
  EXPECT_EQ(sessions, 1);
}

TEST_F(RecoveryTest, AStopOfAHookHoldsThoughALaterOneLosesTheSessionInTheSameRun) {
  const auto stops = add_hook("stops "), loses = add_hook("loses ");
  stops->on_after = [&](SessionRunContext& context, const SessionRunValues&) {
    if (sessions == 1) context.request_stop();
  };
  loses->on_after = [&](SessionRunContext&, const SessionRunValues&) {
    if (sessions == 1) throw AbortedError("preempted");
  };
  MonitoredSession session(options);
  session.run(train);  // again, in another session
  EXPECT_EQ(sessions, 2);
  EXPECT_TRUE(session.should_stop());
  EXPECT_THROW(session.run(train), FailedPreconditionError);
  session.close();
  EXPECT_EQ(calls.back(), "loses end");
}

TEST_F(RecoveryTest, AStopOfAHookHoldsThoughTheRunLosesTheSession) {
  const auto hook = add_hook();
  hook->on_before = [&](SessionRunContext& context) {
    if (sessions == 1) context.request_stop();
  };
  const Output loses = unreliable(step);
  losses = 1;
  MonitoredSession session(options);
  session.run(loses);
  EXPECT_EQ(sessions, 2);
  EXPECT_TRUE(session.should_stop());
}

// As on servers: the error of a lost session says what became of its step.
class LostStep : public RecoveryTest {
 protected:
  Output lost_with(StepFate fate) {
    const Operation loses = code([this, fate] {
      if (losses-- <= 0) return;
      AbortedError error("a task was lost");
      error.set_failed_step({fate, 7});
      throw error;
    });
    return ops::assign_add(root.with_control_dependencies({loses}), step, ops::constant(root, int64_t{1}));
  }
};

TEST_F(LostStep, IsNotMadeAgainIfItWasCommitted) {  // unlike RC-11
  const auto hook = add_hook();
  hook->wants = SessionRunArgs{.fetches = {step}};
  const Output next = lost_with(StepFate::kCommitted);
  losses = 1;
  MonitoredSession session(options);
  const std::vector<Tensor> results = session.run({next, step});
  EXPECT_EQ(sessions, 2);
  EXPECT_THAT(error_of([&] { results[0].item<int64_t>(); }), HasSubstr("the step of this run was committed"));
  EXPECT_EQ(results[1].item<int64_t>(), 0);  // in this process the step is not in the new session
  EXPECT_EQ(hook->results[0].item<int64_t>(), 0);
  EXPECT_EQ(session.run(next).item<int64_t>(), 1);
}

TEST_F(LostStep, IsNotSeenByAHookWhoseResultsAreLost) {
  const LogRecorder log;
  const auto sees_step = add_hook(), sees_next = add_hook();
  const Output next = lost_with(StepFate::kCommitted);
  sees_step->wants = SessionRunArgs{.fetches = {step}};
  sees_next->wants = SessionRunArgs{.fetches = {next}};
  losses = 1;
  MonitoredSession session(options);
  session.run(step);
  EXPECT_EQ(sees_step->results.size(), 1u);
  EXPECT_EQ(sees_next->results.size(), 0u);
  EXPECT_THAT(log.text(), HasSubstr("does not see the last run"));
  session.run(step);
  EXPECT_EQ(sees_next->results.size(), 1u);
}

TEST_F(LostStep, ALostResultThatIsReadIsALostSession) {
  const Output next = lost_with(StepFate::kCommitted);
  losses = 1;
  MonitoredSession session(options);
  const Tensor result = session.run(next);
  EXPECT_FALSE(result.defined());
  EXPECT_THROW(result.item<int64_t>(), AbortedError);
}

TEST_F(LostStep, IsNotMadeAgainThoughTheNextSessionIsLostToo) {
  const auto hook = add_hook();
  hook->on_before = [&](SessionRunContext&) {
    if (sessions == 2) throw AbortedError("lost again");
  };
  const Output next = lost_with(StepFate::kCommitted);
  losses = 1;
  MonitoredSession session(options);
  EXPECT_EQ(session.run({next, step})[1].item<int64_t>(), 0);
  EXPECT_EQ(sessions, 3);
}

TEST_F(LostStep, IsMadeAgainIfItWasNotCommitted) {
  const LogRecorder log;
  const Output next = lost_with(StepFate::kNotCommitted);
  losses = 1;
  MonitoredSession session(options);
  EXPECT_EQ(session.run(next).item<int64_t>(), 1);
  EXPECT_THAT(log.text(), Not(HasSubstr("for the second time")));
}

TEST_F(LostStep, IsMadeAgainWithAWarningIfNobodyKnows) {
  const LogRecorder log;
  const Output next = lost_with(StepFate::kNotKnown);
  losses = 1;
  MonitoredSession session(options);
  EXPECT_EQ(session.run(next).item<int64_t>(), 1);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("perhaps for the second time"));
}

TEST_F(RecoveryTest, ASlowCreationIsNoSessionThatLasted) {
  options.restart = {.max_restarts = 2, .backoff = Seconds{0}, .healthy_after = Seconds{100}};
  on_session = [&] { clock.advance(Seconds{1000}); };
  const Output loses = unreliable(step);
  losses = 10;
  MonitoredSession session(options);
  EXPECT_EQ(error_of([&] { session.run(loses); }).empty(), false);
  EXPECT_EQ(sessions, 3);
}

TEST_F(RecoveryTest, ASessionThatWasNeverReadyIsNoneThatLasted) {
  options.restart = {.max_restarts = 2, .backoff = Seconds{0}, .healthy_after = Seconds{100}};
  int tries = 0;
  on_session = [&] {
    clock.advance(Seconds{1000});
    if (++tries > 10) throw InternalError("there is no limit");
    if (tries > 1) throw UnavailableError("gone");
  };
  const Output loses = unreliable(step);
  losses = 1;
  MonitoredSession session(options);
  EXPECT_EQ(error_of([&] { session.run(loses); }), "gone");
  EXPECT_EQ(tries, 3);
}

}  // namespace
}  // namespace longhaul
