#include "longhaul/train/signals/preemption.h"

#include <atomic>
#include <limits>

#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/checkpointing/final_checkpoint.h"
#include "longhaul/train/interrupted_clock_fixture.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Of a Supervisor whose saves take `save_takes`.
class PreemptionTest : public SupervisorFixture {
 protected:
  PreemptionTest() {
    add_step();
    options.files = &disk;
    options.chief.preemption = &preemption;
    disk.before_rename = [this](const std::string&, const std::string& to) {
      if (!to.ends_with(".index")) return;
      if (before_commit) before_commit();
      clock.advance(save_takes);
    };
  }

  // Makes three steps after the first checkpoint, and is preempted with that much time left.
  void train_and_be_preempted(Supervisor& sv, Seconds grace) {
    sv.managed_session([&](Session& session) {
      eventually([&] { return sv.saver()->last_report().has_value(); });
      for (int i = 0; i < 3; ++i) session.run(train);
      preemption.preempt(grace);
    });
  }
  // Whether the services have ended, which takes no time of the clock, but some of a busy machine.
  static bool is_alone(const Supervisor& sv, const std::string& thread) {
    return sv.coord().running() == std::vector<std::string>{thread};
  }
  // Starts a thread in which the time passes until nobody waits for it any more; it ends when the checkpoint is there.
  void start_stuck_thread(Supervisor& sv, const LogRecorder& log, Seconds deadline) {
    sv.coord().start_thread("stuck", [this, &sv, &log, deadline] {
      while (!has_checkpoint(sv, 1) && Clock::real().now() < deadline) {
        const bool is_left = log.text().find("threads still running: stuck") != std::string::npos;
        if (preemption.is_preempted() && !is_left && is_alone(sv, "stuck")) clock.advance(Seconds{0.01});
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  bool has_checkpoint(const Supervisor& sv, int step_number) {
    return exists(sv.save_path() + "-" + std::to_string(step_number));
  }

  BadDisk disk;
  Seconds save_takes{0};
  std::function<void()> before_commit;  // may be empty, may throw
  Preemption preemption{{.clock = &clock}};
};

TEST_F(PreemptionTest, EndsTheTrainingAfterItsStepWithACheckpointOfIt) {
  Supervisor sv(options);
  int steps = 0;
  sv.managed_session([&](Session& session) {
    while (!sv.should_stop()) {
      session.run(train);
      if (++steps == 3) preemption.preempt();
    }
  });
  EXPECT_EQ(steps, 3);
  EXPECT_TRUE(has_checkpoint(sv, 3));
}

TEST_F(PreemptionTest, AnInfiniteGracePeriodIsRefusedAndIsNoPreemption) {
  const Seconds infinite{std::numeric_limits<double>::infinity()};
  EXPECT_THROW(preemption.preempt(infinite), InvalidArgumentError);
  EXPECT_FALSE(preemption.is_preempted());
}

// A sink may block: each message must find what it tells of done.
class LoggedPreemption : public PreemptionTest {
 protected:
  LoggedPreemption() {
    before_ = set_log_sink([this](LogLevel, const std::string&) {
      if (!coord.should_stop()) is_too_early = true;
      ++messages;
    });
  }
  ~LoggedPreemption() override { set_log_sink(before_); }

  const Coordinator coord;
  const std::shared_ptr<const Coordinator> attached = preemption.attach(coord);
  std::atomic<bool> is_too_early{false};
  std::atomic<int> messages{0};

 private:
  LogSink before_;
};

TEST_F(LoggedPreemption, DoesNotWaitForTheLog) {
  preemption.preempt(Seconds{1});
  EXPECT_GT(messages, 0);
  EXPECT_FALSE(is_too_early);
}

TEST_F(LoggedPreemption, DoesNotWaitForTheLogAfterASignal) {
  raise(SIGINT);
  eventually([&] { return messages > 0; });
  EXPECT_GT(messages, 0);
  EXPECT_FALSE(is_too_early);
}

TEST_F(PreemptionTest, TheExitStatusSaysSo) {
  EXPECT_EQ(preemption.exit_status(), 0);
  EXPECT_EQ(preemption.exit_status(3), 3);
  EXPECT_FALSE(preemption.time_left());
  preemption.preempt();
  EXPECT_EQ(preemption.exit_status(), 75);
  EXPECT_EQ(preemption.exit_status(3), 75);
  EXPECT_EQ(preemption.time_left(), Seconds{30});
}

TEST_F(PreemptionTest, ASaveThatFitsWhatIsLeftIsTaken) {
  save_takes = Seconds{8};
  Supervisor sv(options);
  train_and_be_preempted(sv, Seconds{9});
  EXPECT_TRUE(has_checkpoint(sv, 3));
}

TEST_F(PreemptionTest, ASaveThatDoesNotFitIsLeftOutAndTheLogSaysWhatIsLost) {
  const LogRecorder log;
  save_takes = Seconds{8};
  Supervisor sv(options);
  train_and_be_preempted(sv, Seconds{7});
  EXPECT_FALSE(has_checkpoint(sv, 3));
  EXPECT_TRUE(has_checkpoint(sv, 0));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("model.ckpt-0, and steps 1 to 3 are lost"));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("with 7.0 s left"));
  EXPECT_EQ(preemption.exit_status(), 75);
}

TEST_F(PreemptionTest, WhereNothingWasTrainedSinceNothingIsLost) {
  const LogRecorder log;
  save_takes = Seconds{8};
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    eventually([&] { return sv.saver()->last_report().has_value(); });
    preemption.preempt(Seconds{7});
  });
  EXPECT_TRUE(has_checkpoint(sv, 0));
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("lost")));
}

TEST_F(PreemptionTest, HowLongItTakesIsNotKnownSoItIsTried) {
  options.save_model_secs = Seconds{0};
  save_takes = Seconds{8};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    session.run(train);
    preemption.preempt(Seconds{1});
  });
  EXPECT_TRUE(has_checkpoint(sv, 1));
}

// The first checkpoint is being written when the training, three steps further on, is preempted.
class SnapshotUnderWayTest : public PreemptionTest {
 protected:
  void be_preempted_meanwhile(Supervisor& sv, Seconds grace) {
    std::atomic<bool> is_saving{false};
    save_takes = Seconds{8};
    before_commit = [&] {
      is_saving = true;
      sv.coord().wait_for_stop(Seconds{3600});
    };
    sv.managed_session([&](Session& session) {
      eventually([&] { return is_saving.load(); });
      for (int i = 0; i < 3; ++i) session.run(train);
      preemption.preempt(grace);
    });
  }
};

TEST_F(SnapshotUnderWayTest, IsFinishedInsteadOfASaveThatDoesNotFit) {
  const LogRecorder log;
  Supervisor sv(options);
  be_preempted_meanwhile(sv, Seconds{12});
  EXPECT_TRUE(has_checkpoint(sv, 0));
  EXPECT_FALSE(has_checkpoint(sv, 3));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("with 4.0 s left"));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("model.ckpt-0, and steps 1 to 3 are lost"));
}

TEST_F(SnapshotUnderWayTest, IsFinishedBeforeASaveThatFits) {
  Supervisor sv(options);
  be_preempted_meanwhile(sv, Seconds{20});
  EXPECT_TRUE(has_checkpoint(sv, 0));
  EXPECT_TRUE(has_checkpoint(sv, 3));
}

// Which goes on until the last checkpoint is given up.
TEST_F(PreemptionTest, ThatComesWhileTheLastSaveWaitsForAnotherEndsThatWait) {
  const LogRecorder log;
  InterruptedClock waiting;
  waiting.event = [&] { preemption.preempt(Seconds{0}); };
  Saver saver({.graph = &graph, .files = &disk, .clock = &waiting});
  SaveAttempts attempts({.clock = &waiting});
  const auto session = make_scripted_session(graph, server);
  session->run(step.initializer());
  const std::string path = directory.file("model.ckpt");
  std::atomic<bool> is_saving{false};
  std::thread other([&] {
    saver.save(*session, path, 1, {.after_snapshot = [&](auto) {
      is_saving = true;
      eventually([&] { return log.text().find("no last checkpoint is saved") != std::string::npos; });
    }});
  });
  eventually([&] { return is_saving.load(); });
  const Seconds start = waiting.now();
  EXPECT_FALSE(save_final_checkpoint({saver, attempts, path, step}, *session, &preemption));
  EXPECT_EQ(waiting.now(), start);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("because another save is still under way"));
  other.join();
  waiting.join();
}

// Which answers only when it is left out.
TEST_F(PreemptionTest, AStartSearchesTheMirrorNoLongerThanItLeaves) {
  const LogRecorder log;
  const testing::TemporaryDirectory mirror;
  const ThreadsEnd search;  // which uses what is above
  write_file_atomically(FileSystem::real(), mirror.file("checkpoint"), "model_checkpoint_path: \"model.ckpt-7\"\n");
  disk.before_open = [&](const std::string& path) {
    if (!path.starts_with(mirror.path())) return;
    eventually([&] { return log.text().find("is not searched") != std::string::npos; });
  };
  options.chief.mirror = {.directory = mirror.path(), .start_timeout = Seconds{20}};
  preemption.preempt(Seconds{0});
  Supervisor sv(options);
  EXPECT_THAT(error_of([&] { sv.managed_session([](Session&) {}); }),
              HasSubstr("no answer in the time that a preemption leaves"));
}

TEST_F(PreemptionTest, AThreadThatDoesNotEndLeavesHalfOfThePeriodToTheLastCheckpoint) {
  const LogRecorder log;
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  const Seconds deadline = Clock::real().now() + Seconds{20};
  sv.managed_session([&](Session& session) {
    start_stuck_thread(sv, log, deadline);
    session.run(train);
    preemption.preempt(Seconds{4});
  });
  EXPECT_LT(Clock::real().now(), deadline);
  EXPECT_THAT(log.text(), HasSubstr("threads still running: stuck"));
  EXPECT_TRUE(has_checkpoint(sv, 1));
}

TEST_F(PreemptionTest, NorDoesAStopByTheProgramWaitLongerForSuchAThread) {
  const LogRecorder log;
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  const Seconds deadline = Clock::real().now() + Seconds{20};
  const auto session = sv.prepare_or_wait_for_session();
  start_stuck_thread(sv, log, deadline);
  session->run(train);
  preemption.preempt(Seconds{4});
  sv.stop({.ignore_live_threads = true, .save_checkpoint = true});
  EXPECT_LT(Clock::real().now(), deadline);
  EXPECT_THAT(log.text(), HasSubstr("threads still running: stuck"));
  EXPECT_TRUE(has_checkpoint(sv, 1));
}

// Nobody waits for it any more when half of the period is over; then the last checkpoint is taken.
TEST_F(PreemptionTest, AThreadThatWasLeftBehindIsWaitedForAgainAfterTheLastCheckpoint) {
  const LogRecorder log;
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  std::atomic<bool> may_end{false};
  const auto times_left = [&] {
    const std::string text = log.text(), told = "threads still running: stuck";
    int times = 0;
    for (size_t at = text.find(told); at != text.npos; at = text.find(told, at + 1)) ++times;
    return times;
  };
  std::shared_ptr<CoordinatedThread> stuck;
  sv.managed_session([&](Session& session) {
    stuck = sv.coord().start_thread("stuck", [&] {
      while (!may_end) {
        const bool is_waited_for = times_left() == (has_checkpoint(sv, 1) ? 1 : 0);
        if (preemption.is_preempted() && is_waited_for && is_alone(sv, "stuck")) clock.advance(Seconds{0.01});
        std::this_thread::yield();
      }
    });
    session.run(train);
    preemption.preempt(Seconds{4});
  });
  EXPECT_EQ(times_left(), 2);
  EXPECT_TRUE(has_checkpoint(sv, 1));
  may_end = true;
  eventually([&] { return stuck->finished(); });
}

TEST_F(PreemptionTest, ASessionIsClosedBeforeItsDeadline) {
  std::optional<Seconds> left;
  install_session_factory([&](const std::string&, Graph& made_for, const SessionOptions&) {
    return std::make_unique<TimedSession>(made_for, left);
  });
  Supervisor sv(options);
  sv.managed_session([&](Session&) { preemption.preempt(Seconds{7}); });
  EXPECT_EQ(left, Seconds{7});
}

TEST_F(PreemptionTest, ASaveThatIsAskedForIsTakenAndTheTrainingGoesOn) {
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    for (int i = 0; i < 2; ++i) session.run(train);
    preemption.request_save();  // no time passes until it is taken
    eventually([&] { return has_checkpoint(sv, 2); });
    EXPECT_FALSE(sv.should_stop());
    session.run(train);
  });
  EXPECT_TRUE(has_checkpoint(sv, 3));
  EXPECT_EQ(preemption.exit_status(), 0);
}

TEST_F(PreemptionTest, ASaveThatIsAskedForAndFailsIsTriedAgain) {
  options.save_model_secs = Seconds{0};
  before_commit = [&] { throw ResourceExhaustedError("full"); };
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    preemption.request_save();
    eventually([&] { return sv.save_status().consecutive_failures == 1; });
    before_commit = nullptr;
    clock.advance(Seconds{2});
    eventually([&] { return has_checkpoint(sv, 0); });
  });
}

TEST_F(PreemptionTest, SavesThatAreAskedForMeanwhileCountOnce) {
  preemption.request_save();
  preemption.request_save();
  EXPECT_TRUE(preemption.take_save_request());
  EXPECT_FALSE(preemption.take_save_request());
}

TEST_F(PreemptionTest, AStopThatCameBeforeTheTrainingHoldsForEachSession) {
  preemption.preempt();
  Supervisor sv(options);
  EXPECT_TRUE(sv.should_stop());
  for (int i = 0; i < 2; ++i) {
    sv.managed_session([&](Session&) { EXPECT_TRUE(sv.should_stop()); });
  }
}

TEST_F(PreemptionTest, OfSeveralPeriodsTheOneThatEndsFirstCounts) {
  preemption.preempt(Seconds{100});
  preemption.preempt(Seconds{10});
  preemption.preempt(Seconds{50});
  EXPECT_EQ(preemption.time_left(), Seconds{10});
  clock.advance(Seconds{11});
  EXPECT_EQ(preemption.time_left(), Seconds{-1});
}

TEST_F(PreemptionTest, AStopSignalPreempts) {
  const Coordinator coord;
  const auto kept = preemption.attach(coord);
  raise(SIGUSR1);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  EXPECT_TRUE(preemption.is_preempted());
}

TEST_F(PreemptionTest, AnInterruptStopsAndIsNoPreemption) {
  const Coordinator coord;
  const auto kept = preemption.attach(coord);
  raise(SIGINT);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  EXPECT_FALSE(preemption.is_preempted());
  EXPECT_FALSE(preemption.time_left());
}

TEST_F(PreemptionTest, SaveSignalsAskForASaveAsOftenAsTheyCome) {
  const Coordinator coord;
  const auto kept = preemption.attach(coord);
  for (int i = 0; i < 3; ++i) {
    raise(SIGUSR2);
    bool is_asked = false;
    eventually([&] { return is_asked = is_asked || preemption.take_save_request(); });
  }
  EXPECT_FALSE(coord.should_stop());
}

TEST_F(PreemptionTest, OneThatNoTrainingRunWasGivenSaysSo) {
  const LogRecorder log;
  preemption.preempt(Seconds{10});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("no training run uses this Preemption"));
  const Coordinator coord;
  const auto kept = preemption.attach(coord);
  const LogRecorder later;
  preemption.preempt(Seconds{5});
  EXPECT_THAT(later.text(LogLevel::kWarning), Not(HasSubstr("no training run uses")));
}

TEST_F(PreemptionTest, WithoutALogdirNoCheckpointIsPromised) {
  options.logdir.clear();
  Supervisor sv(options);
  const LogRecorder log;
  sv.managed_session([&](Session&) { preemption.preempt(Seconds{9}); });
  const std::string text = log.text(LogLevel::kWarning);
  EXPECT_THAT(text, HasSubstr("with 9 s for the step ("));
  EXPECT_THAT(text, HasSubstr("training saves no checkpoints (set logdir or checkpoint_dir): a restart starts from "
                              "scratch"));
}

TEST_F(PreemptionTest, ACheckpointIsPromisedIfOneOfTheTrainingRunsTakesThem) {
  const Coordinator saving, other;
  const auto kept = preemption.attach(other, /*takes_checkpoints=*/false);
  const auto also_kept = preemption.attach(saving);
  const LogRecorder log;
  preemption.preempt(Seconds{9});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("with 9 s for the step and a last checkpoint"));
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("saves no checkpoints")));
}

TEST_F(PreemptionTest, ItsStopOutlastsAClearing) {
  const Coordinator coord;
  auto kept = preemption.attach(coord);
  preemption.preempt();
  coord.clear_stop();
  EXPECT_TRUE(coord.should_stop());
  kept.reset();
  coord.clear_stop();
  EXPECT_FALSE(coord.should_stop());
}

TEST_F(PreemptionTest, EachRequestForASaveNotifiesWhoWaitsForOne) {
  const Coordinator coord;
  const auto kept = preemption.notify_of_saves(coord);
  for (int i = 0; i < 2; ++i) {
    std::atomic<bool> is_asked{false};
    std::thread requests([&] {
      while (!is_asked) std::this_thread::yield();
      preemption.request_save();
    });
    EXPECT_FALSE(coord.wait_for_stop_or([&] { return is_asked = true, preemption.has_save_request(); }));
    requests.join();
    EXPECT_TRUE(preemption.take_save_request());
  }
}

TEST_F(PreemptionTest, WhoLetsGoIsNotStopped) {
  const Coordinator coord;
  preemption.attach(coord).reset();
  preemption.preempt();
  EXPECT_FALSE(coord.should_stop());
}

// The attempts of a last save that fails are repeated for as long as there is time, and no longer than told.
class LastSaveTimeoutTest : public PreemptionTest {
 protected:
  Seconds time_until_it_is_given_up(std::optional<Seconds> grace, const std::function<void()>& in_each_attempt = {}) {
    before_commit = [&] {
      if (in_each_attempt) in_each_attempt();
      throw ResourceExhaustedError("full");
    };
    testing::FakeClock passing(testing::FakeClock::Waits::kPassTime);
    Saver saver({.graph = &graph, .files = &disk, .clock = &passing});
    SaveAttempts attempts({.last_save_timeout = Seconds{60}, .clock = &passing});
    const auto session = make_scripted_session(graph, server);
    session->run(step.initializer());
    if (grace) preemption.preempt(grace);
    const SaveTarget target{saver, attempts, directory.file("model.ckpt"), step};
    const Seconds start = passing.now();
    EXPECT_THROW(save_final_checkpoint(target, *session, &preemption), ResourceExhaustedError);
    return passing.now() - start;
  }
};

TEST_F(LastSaveTimeoutTest, EndsWithTheGracePeriod) {
  EXPECT_EQ(time_until_it_is_given_up(Seconds{8}), Seconds{7});  // after waits of 1, 2 and 4 s
}

TEST_F(LastSaveTimeoutTest, IsAsToldWhereThereIsTimeEnough) {
  EXPECT_EQ(time_until_it_is_given_up(Seconds{3600}), Seconds{31});
}

TEST_F(LastSaveTimeoutTest, EndsWithTheGracePeriodOfAPreemptionThatComesBetweenTwoAttempts) {
  int attempts_made = 0;
  const auto preempt_in_the_second = [&] {
    if (++attempts_made == 2) preemption.preempt(Seconds{3});
  };
  EXPECT_EQ(time_until_it_is_given_up(std::nullopt, preempt_in_the_second), Seconds{3}) << "after waits of 1 and 2 s";
}

TEST_F(LastSaveTimeoutTest, IsAsToldWithoutAPreemption) {
  EXPECT_EQ(time_until_it_is_given_up(std::nullopt), Seconds{31});
}

TEST_F(PreemptionTest, ATrainingThatLeavesItOutIsTold) {
  const LogRecorder log;
  options.chief.preemption = nullptr;
  Supervisor sv(options);
  sv.managed_session([](Session&) {});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("the program has a Preemption, but this training does not use "
                                                      "it: signals that it takes will not stop the training"));
}

TEST_F(PreemptionTest, ASecondTrainingBesideTheOneThatUsesItIsNot) {
  const Coordinator coord;
  const auto kept = preemption.attach(coord);
  const LogRecorder log;
  options.chief.preemption = nullptr;
  Supervisor sv(options);
  sv.managed_session([](Session&) {});
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("the program has a Preemption")));
}

TEST(Preemption, AnExitStatusThatNobodyAsksForIsMissed) {
  const auto told_of = [](bool is_asked, int status) {
    const LogRecorder log;
    {
      Preemption preempted({.exit_status = status});
      preempted.preempt(Seconds{5});
      if (is_asked) {
        EXPECT_EQ(preempted.exit_status(), status);
      }
    }
    return log.text(LogLevel::kWarning);
  };
  const auto missed = HasSubstr("nobody has asked the Preemption for its exit status");
  EXPECT_THAT(told_of(false, 75), missed);
  EXPECT_THAT(told_of(true, 75), Not(missed));
  EXPECT_THAT(told_of(false, 0), Not(missed)) << "which is what the program ends with anyhow";
  const LogRecorder log;
  try {
    Preemption preempted;
    preempted.preempt(Seconds{5});
    throw UnavailableError("the last save");
  } catch (const UnavailableError&) {
    EXPECT_THAT(log.text(LogLevel::kWarning),
                AllOf(HasSubstr("an exception ends it"), HasSubstr("return preemption.exit_status(1)"), Not(missed)));
  }
}

}  // namespace
}  // namespace longhaul
