#include "longhaul/train/coordination/chief_lock.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "longhaul/base/deadline.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/coordination/teardown.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/interrupted_clock_fixture.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

OwnerRecord stranger() {
  return {.token = std::string(32, 'e'),
          .process = {.host = "far-away", .boot_id = "another", .pid_namespace = "pid:[1]", .pid = 42, .start_time = 7},
          .since = 1763721934,
          .heartbeat = 1763722264};
}

// Counts who waits on it.
class WatchedClock : public testing::FakeClock {
 public:
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    ++waits;
    FakeClock::wait_for(cond, mutex, timeout);
  }
  std::atomic<int> waits{0};
};

class ChiefLockTest : public SupervisorFixture {
 protected:
  ChiefLockTest() { add_step(); }

  std::unique_ptr<ChiefLock> take() {
    auto lock = std::make_unique<ChiefLock>(directory.path(), DirectoryLockOptions{.files = &files, .clock = &watched},
                                            [this](const std::exception_ptr&) { ++losses; });
    eventually([&] { return watched.waits > 0; });  // for the first beat, by a time that has not moved
    return lock;
  }
  // How often somebody has tried to write a record.
  int records_begun() const {
    const auto operations = files.operations();
    return static_cast<int>(std::count_if(operations.begin(), operations.end(), [](const std::string& operation) {
      return operation.starts_with("append chief.owner.tmp");
    }));
  }
  void steal() { write_owner(FileSystem::real(), directory.path(), stranger()); }
  std::optional<OwnerRecord> owner() { return read_owner(FileSystem::real(), directory.path()); }
  // The time moves until it has happened: a beat is due every ten seconds.
  template <typename Condition>
  void as_time_passes(Condition condition) {
    eventually([&] {
      clock.advance(Seconds{1});
      return condition();
    });
  }
  // As another process sees it, which has no record of its own to compare with.
  void expect_taken() {
    Graph other;
    Supervisor second({.graph = &other, .logdir = directory.path(), .clock = &clock});
    EXPECT_THROW(second.managed_session([](Session&) {}), DirectoryLockedError);
  }

  WatchedClock watched;  // of take()
  testing::FaultyFileSystem files;
  std::atomic<int> losses{0};
};

TEST_F(ChiefLockTest, BeatsSixTimesWithinTheLimit) {
  const auto lock = take();
  const double first = owner()->heartbeat;
  EXPECT_EQ(first, watched.wall_time());
  for (int beat = 1; beat <= 6; ++beat) {
    watched.advance(Seconds{10});  // of 60
    eventually([&] { return owner()->heartbeat == first + 10 * beat; });
    ASSERT_EQ(owner()->heartbeat, first + 10 * beat);
  }
  EXPECT_EQ(owner()->since, first);
  EXPECT_NO_THROW(lock->raise_if_lost());
}

TEST_F(ChiefLockTest, IsGivenBackWhenItIsDestroyed) {
  take();
  EXPECT_THAT(FileSystem::real().list(directory.path()), IsEmpty());
  EXPECT_NO_THROW(take());
}

TEST_F(ChiefLockTest, AHeartbeatThatCannotBeWrittenIsLoggedOnceAndTriedAgain) {
  const LogRecorder log;
  const auto lock = take();
  const double first = owner()->heartbeat;
  files.fail_writes_after(0);
  for (int failures = 1; failures <= 3; ++failures) {
    watched.advance(Seconds{10});
    eventually([&] { return records_begun() == 1 + failures; });
  }
  files.heal();
  watched.advance(Seconds{10});
  eventually([&] { return owner()->heartbeat == first + 40; });
  const std::string text = log.text();
  EXPECT_THAT(text, HasSubstr("the heartbeat failed and is retried: "));
  EXPECT_EQ(text.find("the heartbeat failed"), text.rfind("the heartbeat failed"));
  EXPECT_EQ(losses, 0);
}

// A program's own file system, which throws what it likes.
class OddFiles : public testing::FaultyFileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    if (!is_odd) return FaultyFileSystem::create(path, if_exists);
    if (++odd_calls % 2 == 0) throw 42;
    throw std::runtime_error("an odd error");
  }
  std::atomic<bool> is_odd{false};
  std::atomic<int> odd_calls{0};
};

TEST_F(ChiefLockTest, AHeartbeatIsTriedAgainWhateverItsFileSystemThrows) {
  OddFiles odd;
  ChiefLock lock(directory.path(), {.files = &odd, .clock = &watched});
  eventually([&] { return watched.waits > 0; });
  const double first = owner()->heartbeat;
  odd.is_odd = true;
  for (int failures = 1; failures <= 2; ++failures) {
    watched.advance(Seconds{10});
    eventually([&] { return odd.odd_calls == failures; });
    ASSERT_EQ(odd.odd_calls, failures);
  }
  odd.is_odd = false;
  watched.advance(Seconds{10});
  eventually([&] { return owner()->heartbeat == first + 30; });
  EXPECT_EQ(owner()->heartbeat, first + 30);
  EXPECT_NO_THROW(lock.raise_if_lost());
}

// In which no file can be made while it hangs.
class HungFiles : public testing::FaultyFileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    if (hangs) is_met = true;
    hangs.wait(true);
    return FaultyFileSystem::create(path, if_exists);
  }
  void let_go() {
    hangs = false;
    hangs.notify_all();
  }
  std::atomic<bool> hangs{false}, is_met{false};
};

TEST_F(ChiefLockTest, AHeartbeatThatHangsIsNotWaitedForBeyondAPreemptionsTime) {
  HungFiles hung;
  const ThreadsEnd heart;
  Preemption preemption({.clock = &watched});
  ChiefTenure tenure({.directory = directory.path(),
                      .chief = {.keep_journal = false, .preemption = &preemption},
                      .files = &hung,
                      .clock = &watched});
  tenure.begin({});
  eventually([&] { return watched.waits > 0; });
  hung.hangs = true;
  watched.advance(Seconds{10});
  eventually([&] { return hung.is_met.load(); });
  preemption.preempt(Seconds{0});
  auto ended = std::async(std::launch::async, [&] {
    Teardown end;
    tenure.end(end);
  });
  const Seconds start = watched.now();
  eventually([&] {
    watched.advance(Seconds{0.01});
    return ended.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready;
  });
  EXPECT_LT(watched.now() - start, Seconds{30}) << "half a lease";
  EXPECT_TRUE(owner());
  hung.let_go();
  eventually([&] { return !owner(); });
}

// One that the test moves, until what waits on it is to be interrupted.
class LaterInterruptedClock : public InterruptedClock {
 public:
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    is_moved ? FakeClock::wait_for(cond, mutex, timeout) : InterruptedClock::wait_for(cond, mutex, timeout);
  }
  std::atomic<bool> is_moved{true};
};

TEST_F(ChiefLockTest, APreemptionThatBeginsWhileAHungHeartbeatIsWaitedForShortensThatWait) {
  HungFiles hung;
  LaterInterruptedClock interrupted;
  Deadline deadline(interrupted);
  const ThreadsEnd heart;
  auto lock = std::make_unique<ChiefLock>(directory.path(), DirectoryLockOptions{.files = &hung, .clock = &interrupted},
                                          nullptr, &deadline);
  hung.hangs = true;
  eventually([&] {
    interrupted.advance(Seconds{1});
    return hung.is_met.load();
  });
  interrupted.event = [&] {
    interrupted.advance(Seconds{1});  // which a heartbeat has in any case
    deadline.bring_forward(Seconds{0});
  };
  interrupted.is_moved = false;
  const Seconds start = interrupted.now();
  lock.reset();
  EXPECT_TRUE(deadline.is_set()) << "the heartbeat was waited for";
  EXPECT_LE(interrupted.now() - start, Seconds{1});
  hung.let_go();
  interrupted.join();
}

TEST_F(ChiefLockTest, ALossIsReportedOnceAndEndsTheHeart) {
  const ThreadsEnd heart;
  const auto lock = take();
  EXPECT_TRUE(heart.have_not());
  steal();
  EXPECT_NO_THROW(lock->raise_if_lost());
  watched.advance(Seconds{10});
  eventually([&] { return losses > 0; });
  EXPECT_THROW(lock->raise_if_lost(), DirectoryLostError);
  watched.advance(Seconds{100});
  eventually([&] { return !heart.have_not(); });
  EXPECT_EQ(losses, 1);
  EXPECT_EQ(owner(), stranger());
}

TEST_F(ChiefLockTest, ALimitThatIsNotPositiveIsRefused) {
  for (const Seconds limit : {Seconds{0}, Seconds{-1}}) {
    options.chief.lock.lease_secs = limit;
    Supervisor sv(options);
    EXPECT_THROW(sv.managed_session([](Session&) { FAIL(); }), InvalidArgumentError);
    EXPECT_EQ(owner(), std::nullopt);
  }
}

TEST_F(ChiefLockTest, ALeaseThatIsTooShortForItsHeartbeatsIsRefusedByName) {
  for (const double lease : {1e-4, 0.99, std::nan("")}) {
    options.chief.lock.lease_secs = Seconds{lease};
    Supervisor sv(options);
    EXPECT_THAT(error_of([&] { sv.managed_session([](Session&) { FAIL(); }); }), HasSubstr("chief.lock.lease_secs is"));
    EXPECT_EQ(owner(), std::nullopt);
  }
  options.chief.lock.lease_secs = kShortestLease;
  Supervisor(options).managed_session([](Session&) {});
}

TEST_F(ChiefLockTest, WithoutFlockTheRecordAloneKeepsASecondOneOut) {  // unlike RC-6
  options.chief.lock.with_flock = false;
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    EXPECT_FALSE(owner()->has_flock);
    EXPECT_FALSE(FileSystem::real().exists(directory.file("chief.lock")));
    expect_taken();
  });
}

TEST_F(ChiefLockTest, ASecondSupervisorIsRefusedAndLeavesNoTrace) {
  options.save_model_secs = options.save_summaries_secs = Seconds{0};
  options.summary_writer = kNone;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    session.run(train);
    const auto before = FileSystem::real().list(directory.path());
    Graph other;
    Supervisor second({.graph = &other, .logdir = directory.path(), .clock = &clock});
    EXPECT_THAT(error_of([&] { second.managed_session([](Session&) { FAIL(); }); }),
                AllOf(HasSubstr(directory.path() + " already has a chief: host "), HasSubstr("It is this process")));
    EXPECT_THROW(second.prepare_or_wait_for_session(), DirectoryLockedError);
    EXPECT_EQ(FileSystem::real().list(directory.path()), before);
  });
  EXPECT_TRUE(exists(directory.file("model.ckpt-1")));
}

TEST_F(ChiefLockTest, ARefusalIsThrownAndNotLoggedAsWell) {
  const auto lock = take();
  Supervisor sv(options);
  const LogRecorder log;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(sv.managed_session([](Session&) { FAIL(); }), DirectoryLockedError);
  }
  EXPECT_THAT(log.text(LogLevel::kInfo), Not(HasSubstr("already has a chief")));
}

TEST_F(ChiefLockTest, ASupervisorHasItsLogdirWhileItTrains) {
  Supervisor sv(options);
  EXPECT_EQ(owner(), std::nullopt);
  sv.managed_session([&](Session&) { expect_taken(); });
  EXPECT_EQ(owner(), std::nullopt);
  const auto session = sv.prepare_or_wait_for_session();
  expect_taken();
  sv.stop();
  EXPECT_EQ(owner(), std::nullopt);
  EXPECT_THROW(sv.managed_session([](Session&) { throw InternalError("a bug"); }), InternalError);
  EXPECT_EQ(owner(), std::nullopt);
}

TEST_F(ChiefLockTest, OneThatWasNotStoppedGivesItBackWhenItIsDestroyed) {
  {
    Supervisor sv(options);
    sv.prepare_or_wait_for_session();
    expect_taken();
  }
  EXPECT_EQ(owner(), std::nullopt);
}

TEST_F(ChiefLockTest, TheStandardServicesTakeItToo) {
  Supervisor sv(options);
  sv.start_standard_services(sv.session_manager().prepare_session({.init_op = sv.init_op()}));
  expect_taken();
  sv.stop();
  EXPECT_EQ(owner(), std::nullopt);
}

TEST_F(ChiefLockTest, WithoutLockLogdirNobodyIsRefused) {
  options.chief.lock.lock = false;
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    EXPECT_EQ(owner(), std::nullopt);
    Graph other;
    Supervisor second(
        {.graph = &other, .logdir = directory.path(), .chief = {.lock = {.lock = false}}, .clock = &clock});
    EXPECT_NO_THROW(second.managed_session([](Session&) {}));
  });
}

TEST_F(ChiefLockTest, ASupervisorWhoseLogdirIsTakenOverStopsAndSavesNoMore) {
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  const std::string error = error_of([&] {
    sv.managed_session([&](Session& session) {
      session.run(train);
      steal();
      as_time_passes([&] { return sv.should_stop(); });
    });
  });
  EXPECT_THAT(error, HasSubstr("now has another chief: host far-away, process 42"));
  EXPECT_FALSE(exists(directory.file("model.ckpt-1")));
  EXPECT_EQ(owner(), stranger());
}

TEST_F(ChiefLockTest, ASaveFindsOutBeforeTheNextHeartbeat) {
  Supervisor sv(options);
  EXPECT_THROW(sv.managed_session([&](Session& session) {
    session.run(train);
    eventually([&] { return !sv.saver()->last_saved().empty(); });
    session.run(train);
    const std::string state = read_file(FileSystem::real(), directory.file("checkpoint"));
    steal();
    EXPECT_THROW(sv.saver()->save(session, sv.save_path(), int64_t{7}), DirectoryLostError);
    EXPECT_FALSE(exists(directory.file("model.ckpt-7")));
    EXPECT_EQ(read_file(FileSystem::real(), directory.file("checkpoint")), state);
    FileSystem::real().remove(owner_path(directory.path()));
    EXPECT_THROW(sv.saver()->save(session, sv.save_path(), int64_t{7}), DirectoryAwayError);
    steal();
  }),
               DirectoryLostError);
}

class MonitoredLockTest : public ChiefLockTest {
 protected:
  MonitoredTrainingSessionOptions training() {
    return {.graph = &graph,
            .checkpoint_dir = directory.path(),
            .failures = {.restart = {.backoff = Seconds{0}}},  // by this clock a longer one would never end
            .coordinator = Coordinator({.clock = &clock})};
  }
};

TEST_F(MonitoredLockTest, AMonitoredTrainingHasItsDirectoryWhileItTrains) {
  monitored_training_session(training(), [&](MonitoredSession& session) {
    session.run(train);
    expect_taken();
  });
  EXPECT_EQ(owner(), std::nullopt);
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  EXPECT_THROW(monitored_training_session(training(), [](MonitoredSession&) {}), DirectoryLockedError);
}

TEST_F(MonitoredLockTest, AfterAnErrorItIsFreeAndMayBeSwitchedOff) {
  EXPECT_THROW(monitored_training_session(training(), [](MonitoredSession&) { throw InternalError("a bug"); }),
               InternalError);
  EXPECT_EQ(owner(), std::nullopt);
  auto unlocked = training();
  unlocked.chief.lock.lock = false;
  monitored_training_session(unlocked, [&](MonitoredSession&) { EXPECT_EQ(owner(), std::nullopt); });
}

TEST_F(MonitoredLockTest, OneWhoseDirectoryIsTakenOverStops) {
  int steps = 0;
  EXPECT_THROW(monitored_training_session(training(),
                                          [&](MonitoredSession& session) {
                                            steal();
                                            as_time_passes([&] {
                                              session.run(train);
                                              return ++steps > 10000;
                                            });
                                          }),
               DirectoryLostError);
  EXPECT_LT(steps, 10000);
  EXPECT_EQ(owner(), stranger());
}

TEST_F(MonitoredLockTest, ASessionThatIsLostLeavesTheDirectoryLocked) {
  auto options = training();
  bool lost = false;
  monitored_training_session(options, [&](MonitoredSession& session) {
    const std::string token = owner()->token;
    session.run_step_fn([&](StepContext&) {
      if (!std::exchange(lost, true)) throw AbortedError("the server was restarted");
    });
    EXPECT_EQ(owner()->token, token);
  });
}

TEST_F(MonitoredLockTest, ItsDirectoryIsLockedBeforeAnyHookBeginsAndUntilTheLastHasEnded) {
  std::vector<std::string> calls;
  const auto first = std::make_shared<RecordingHook>(&calls, "first "), last = std::make_shared<RecordingHook>(&calls);
  first->on_begin = [&](Graph&) { expect_taken(); };
  last->on_end = [&](Session&) { expect_taken(); };
  auto options = training();
  options.chief_only_hooks = {first};
  options.hooks = {last};
  monitored_training_session(options, [](MonitoredSession&) {});
  EXPECT_EQ(calls.back(), "end");
  EXPECT_EQ(owner(), std::nullopt);
}

TEST_F(MonitoredLockTest, ARefusedOneLeavesNoTrace) {
  const auto lock = take();
  const auto before = FileSystem::real().list(directory.path());
  EXPECT_THROW(monitored_training_session(training(), [](MonitoredSession&) {}), DirectoryLockedError);
  EXPECT_EQ(FileSystem::real().list(directory.path()), before);
}

TEST_F(MonitoredLockTest, AfterAnErrorItIsFreeThoughSomebodyKeepsTheHooks) {
  const MonitoredSessionOptions options = monitored_session_options(training());
  MonitoredSession session(options);
  EXPECT_THROW(session.monitor([] { throw InternalError("a bug"); }), InternalError);
  EXPECT_EQ(owner(), std::nullopt);
}

TEST_F(MonitoredLockTest, OneThatWaitsForAQueueStopsWhenItsDirectoryIsTakenOver) {
  const FIFOQueue queue(root, 10, {kInt64}, {.shapes = {Shape{}}});
  std::atomic<bool> begun{false}, released{false};
  enqueue_from(root, queue, [&]() -> std::optional<std::vector<Tensor>> {
    eventually([&] { return begun.load(); });
    steal();
    as_time_passes([&] { return released.load(); });
    return std::nullopt;
  });
  const Output next = queue.dequeue(root)[0];
  const std::string error = error_of([&] {
    monitored_training_session(training(), [&](MonitoredSession& session) {
      begun = true;
      EXPECT_THROW(session.run(next), OutOfRangeError);
      released = true;
    });
  });
  EXPECT_THAT(error, HasSubstr("now has another chief: host far-away, process 42"));
}

TEST_F(MonitoredLockTest, OneThatIsTakenOverEndsWithoutALastWordToItsHooks) {
  std::vector<std::string> calls;
  auto options = training();
  options.hooks = {std::make_shared<RecordingHook>(&calls)};
  EXPECT_THROW(monitored_training_session(options,
                                          [&](MonitoredSession& session) {
                                            steal();
                                            as_time_passes([&] { return session.should_stop(); });
                                          }),
               DirectoryLostError);
  EXPECT_NE(calls.back(), "end");
}

TEST_F(MonitoredLockTest, ItsLimitAndItsFlockCanBeChosen) {
  auto options = training();
  options.chief.lock.lease_secs = Seconds{600};
  options.chief.lock.with_flock = false;
  monitored_training_session(options, [&](MonitoredSession&) {
    EXPECT_EQ(owner()->limit, 600);
    EXPECT_FALSE(owner()->has_flock);
  });
}

}  // namespace
}  // namespace longhaul
