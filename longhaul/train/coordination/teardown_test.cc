// The end of a training: each step of it is done, whatever the others threw, and the first error comes out.
#include "longhaul/train/coordination/teardown.h"

#include <filesystem>
#include <future>

#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST(Teardown, DoesEveryStepAndThrowsTheFirstErrorWhicheverOnesFail) {
  for (int failing = 0; failing < 8; ++failing) {
    Teardown end;
    int done = 0;
    std::string first;
    for (int i = 0; i < 3; ++i) {
      const bool fails = (failing >> i) % 2 == 1;
      const std::string name = "step " + std::to_string(i);
      if (fails && first.empty()) first = name;
      end.step(name, [&] {
        ++done;
        if (fails) throw InternalError(name);
      });
    }
    EXPECT_EQ(done, 3);
    EXPECT_EQ(end.steps(), (std::vector<std::string>{"step 0", "step 1", "step 2"}));
    EXPECT_EQ(error_of([&] { end.raise_error(); }), first);
  }
}

TEST(Teardown, LogsTheLaterErrors) {
  const LogRecorder log;
  Teardown end(std::make_exception_ptr(InternalError("of the body")));
  end.step("the mirror", [] { throw UnavailableError("unmounted"); });
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("unmounted (from the mirror)"));
  EXPECT_EQ(message_of(end.error()), "of the body");
}

TEST(Teardown, WhatWasBehindItAllComesOutInstead) {
  const LogRecorder log;
  Teardown end;
  end.outrank(nullptr);
  EXPECT_EQ(end.error(), nullptr);
  end.step("the run", [] { throw OutOfRangeError("the queue is closed"); });
  end.outrank(std::make_exception_ptr(InternalError("the input is broken")));
  end.step("the mirror", [] { throw UnavailableError("unmounted"); });
  EXPECT_EQ(message_of(end.error()), "the input is broken");
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("the queue is closed"));
}

// A log sink of the program's that throws when it is told of something, once: which no step may fail for.
class ThrowingSink {
 public:
  explicit ThrowingSink(const std::string& marker) {
    before_ = set_log_sink([marker, has_thrown = has_thrown_](LogLevel, const std::string& line) {
      if (!marker.empty() && line.find(marker) != line.npos && !has_thrown->exchange(true)) {
        throw std::runtime_error("the sink: " + marker);
      }
    });
  }
  ~ThrowingSink() { set_log_sink(before_); }
  bool has_thrown() const { return *has_thrown_; }

 private:
  std::shared_ptr<std::atomic<bool>> has_thrown_ = std::make_shared<std::atomic<bool>>(false);
  LogSink before_;
};

RunHistory history_in(const std::string& directory) {
  return parse_run_journal(read_file(FileSystem::real(), journal_path(directory))).history;
}

// What the log says where a step fails: the event file's, the mirror's, the journal's; and none, where all succeed.
class SupervisorsEnd : public SupervisorFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  SupervisorsEnd() {
    add_step();
    options.save_model_secs = options.save_summaries_secs = Seconds{0};
    options.summary_writer = &writer;
    options.chief.mirror = {.directory = directory.file("a_file/mirror"), .end_timeout = Seconds{0}};
    FileSystem::real().create(directory.file("a_file"))->close();
  }
  void expect_all_is_let_go() {
    EXPECT_TRUE(writer.is_closed());
    EXPECT_FALSE(FileSystem::real().exists(owner_path(directory.path())));
    EXPECT_EQ(history_in(directory.path()).sums().phase, RunHistory::Phase::kStopped);
  }

  testing::TemporaryDirectory events_place;
  testing::FaultyFileSystem events_files;
  FileWriter writer{events_place.path(), {.files = &events_files}};
};

INSTANTIATE_TEST_SUITE_P(Step, SupervisorsEnd,
                         ::testing::Values("", "is incomplete", "is not in the mirror", " goodput"));

TEST_P(SupervisorsEnd, OfAManagedSessionLetsGoOfAllWhateverItsLogThrowsAt) {
  const ThrowingSink sink(GetParam());
  Supervisor sv(options);
  const std::string error = error_of([&] {
    sv.managed_session([&](Session& session) {
      session.run(train);
      events_files.fail_writes_after(0);
    });
  });
  EXPECT_EQ(error, "");
  EXPECT_EQ(sink.has_thrown(), GetParam() != std::string());
  expect_all_is_let_go();
}

TEST_P(SupervisorsEnd, ByStopLetsGoOfAllWhateverItsLogThrowsAt) {
  const ThrowingSink sink(GetParam());
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  session->run(train);
  sv.saver()->save(*session, sv.save_path(), step);
  events_files.fail_writes_after(0);
  const std::string error = error_of([&] { sv.stop(); });
  EXPECT_EQ(error, "");
  EXPECT_EQ(sink.has_thrown(), GetParam() != std::string());
  expect_all_is_let_go();
}

TEST_P(SupervisorsEnd, OfABodyThatFailsIsThatError) {
  const ThrowingSink sink(GetParam());
  Supervisor sv(options);
  EXPECT_EQ(error_of([&] {
              sv.managed_session([&](Session& session) {
                session.run(train);
                sv.saver()->save(session, sv.save_path(), step);
                events_files.fail_writes_after(0);
                throw InternalError("a bug");
              });
            }),
            "a bug");
  expect_all_is_let_go();
}

// On a thread that ends only when the test lets it.
TEST_F(SupervisorFixture, StopWaitsForItsThreadsNoLongerThanAPreemptionLeaves) {
  Preemption preemption({.clock = &clock});
  add_step();
  options.chief.preemption = &preemption;
  options.stop_grace_secs = Seconds{1e9};  // which the clock does not reach
  const LogRecorder log;
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  std::promise<void> end;
  sv.coord().start_thread("stuck", [may_end = end.get_future().share()] { may_end.wait(); });
  preemption.preempt(Seconds{4});
  std::thread time([&] {
    eventually([&] {
      clock.advance(Seconds{0.01});
      return log.text().find("threads still running: stuck") != std::string::npos;
    });
    end.set_value();
  });
  sv.stop();
  time.join();
  EXPECT_THAT(log.text(), HasSubstr("threads still running: stuck"));
}

class MonitoredEnd : public MonitoredFixture {
 protected:
  MonitoredEnd() { training = {.graph = &graph, .checkpoint_dir = directory.path(), .coordinator = coordinator}; }
  void make_checkpoint() {
    monitored_training_session(training, [&](MonitoredSession& session) { session.run(train); });
  }
  RunHistory history() { return history_in(directory.path()); }

  MonitoredTrainingSessionOptions training;
};

TEST_F(MonitoredEnd, ByAThreadsErrorIsJournalledAsThat) {
  const FIFOQueue queue(root, 10, {kInt64}, {.shapes = {Shape{}}});
  bool fails = false;
  enqueue_from(root, queue, [&]() -> std::optional<std::vector<Tensor>> {
    if (fails) throw InternalError("the input is broken");
    return std::nullopt;
  });
  const Output next = queue.dequeue(root)[0];
  make_checkpoint();
  fails = true;
  const std::string error =
      error_of([&] { monitored_training_session(training, [&](MonitoredSession& session) { session.run(next); }); });
  EXPECT_THAT(error, HasSubstr("the input is broken"));
  EXPECT_EQ(history().sums().interruptions, 1);
  EXPECT_EQ(history().deaths_after("model.ckpt-1"), 1);
}

TEST_F(MonitoredEnd, ByAHooksErrorIsJournalledAsThat) {
  make_checkpoint();
  const auto hook = std::make_shared<RecordingHook>(&calls);
  hook->on_end = [](Session&) { throw InternalError("no last word"); };
  training.hooks = {hook};
  const std::string error = error_of([&] { monitored_training_session(training, [](MonitoredSession&) {}); });
  EXPECT_THAT(error, HasSubstr("no last word"));
  EXPECT_EQ(history().sums().interruptions, 1);
  EXPECT_EQ(history().deaths_after("model.ckpt-1"), 1);
}

TEST_F(MonitoredEnd, HasEachHooksLastWordThoughTheOneBeforeFails) {
  const auto first = std::make_shared<RecordingHook>(), last = std::make_shared<RecordingHook>(&calls);
  first->on_end = [](Session&) { throw InternalError("no last word"); };
  last->on_end = [](Session&) { throw InternalError("nor here"); };
  training.chief_only_hooks = {first};
  training.hooks = {last};
  const std::string error =
      error_of([&] { monitored_training_session(training, [&](MonitoredSession& session) { session.run(train); }); });
  EXPECT_THAT(error, HasSubstr("no last word"));
  EXPECT_EQ(calls.back(), "end");
  EXPECT_TRUE(FileSystem::real().exists(directory.file("model.ckpt-1.index"))) << "the last checkpoint";
}

TEST_F(MonitoredEnd, ByAnErrorClosesTheMirrorBeforeTheDirectoryIsGivenBack) {
  const testing::TemporaryDirectory mirror;
  BadDisk disk;
  bool was_mirrored = false;
  disk.before_remove = [&](const std::string& path) {
    if (path == owner_path(directory.path())) {
      was_mirrored = FileSystem::real().exists(mirror.file("model.ckpt-1.index"));
    }
  };
  training.files = &disk;
  training.save_checkpoint_steps = int64_t{1};
  training.chief.mirror.directory = mirror.path();
  EXPECT_THROW(monitored_training_session(training,
                                          [&](MonitoredSession& session) {
                                            session.run(train);
                                            throw InternalError("a bug");
                                          }),
               InternalError);
  EXPECT_TRUE(was_mirrored);
}

TEST_F(MonitoredEnd, ByAnErrorWaitsForTheMirrorNoLongerThanAPreemptionLeaves) {
  const LogRecorder log;
  Preemption preemption({.clock = &clock});
  FileSystem::real().create(directory.file("a_file"))->close();
  training.chief.preemption = &preemption;
  training.chief.mirror.directory = directory.file("a_file/mirror");
  EXPECT_THROW(monitored_training_session(training,
                                          [&](MonitoredSession&) {
                                            preemption.preempt(Seconds{0});
                                            throw InternalError("a bug");
                                          }),
               InternalError)
      << "by this clock the mirror's own timeout would never end";
  EXPECT_THAT(log.text(), HasSubstr("is not in the mirror"));
}

TEST_F(MonitoredEnd, WaitsForItsThreadsNoLongerThanAPreemptionLeaves) {
  Preemption preemption({.clock = &clock});
  const auto hook = std::make_shared<RecordingHook>();
  training.chief.preemption = &preemption;
  training.stop_grace_period_secs = Seconds{1e9};  // which the clock does not reach
  training.hooks = {hook};
  const LogRecorder log;
  std::promise<void> end;
  std::thread time;
  monitored_training_session(training, [&](MonitoredSession&) {
    hook->coord.start_thread("stuck", [may_end = end.get_future().share()] { may_end.wait(); });
    preemption.preempt(Seconds{4});
    time = std::thread([&] {
      eventually([&] {
        clock.advance(Seconds{0.01});
        return log.text().find("threads still running: stuck") != std::string::npos;
      });
      end.set_value();
    });
  });
  time.join();
  EXPECT_THAT(log.text(), HasSubstr("threads still running: stuck"));
}

// Whatever step of the end fails, or none: the mirror, the journal.
class MonitoredEndSteps : public MonitoredEnd, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Step, MonitoredEndSteps, ::testing::Values("", "is not in the mirror", " goodput"));

TEST_P(MonitoredEndSteps, LetsGoOfAllWhateverItsLogThrowsAt) {
  FileSystem::real().create(directory.file("a_file"))->close();
  training.chief.mirror = {.directory = directory.file("a_file/mirror"), .end_timeout = Seconds{0}};
  const ThrowingSink sink(GetParam());
  const std::string error =
      error_of([&] { monitored_training_session(training, [&](MonitoredSession& session) { session.run(train); }); });
  EXPECT_EQ(error, "");
  EXPECT_EQ(sink.has_thrown(), GetParam() != std::string());
  EXPECT_FALSE(FileSystem::real().exists(owner_path(directory.path())));
  EXPECT_NE(history().sums().phase, RunHistory::Phase::kTraining);
}

}  // namespace
}  // namespace longhaul
