// Whichever way a training run ends, all its events are in the file before the directory is given back.
#include <algorithm>

#include "longhaul/events/file_writer_cache.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;

constexpr char kUnflushed[] = "summary mark=1 @7";

// Looks at the events of a directory when a lock is given back.
class LooksAtEvents : public BadDisk {
 public:
  // `locked`: the directory with the lock.
  void look_when_free(const std::string& locked, const std::string& events, std::vector<bool>& found) {
    before_remove = [before = before_remove, locked, events, &found](const std::string& path) {
      if (before) before(path);
      if (path != owner_path(locked)) return;
      const auto lines = describe(events_in_directory(events));
      found.push_back(std::find(lines.begin(), lines.end(), kUnflushed) != lines.end());
    };
  }
};

// Supervisors of which the writer gets an event that nobody flushes.
class SupervisorsLockGoesLast : public SupervisorFixture {
 protected:
  SupervisorsLockGoesLast() {
    add_step();
    options.save_model_secs = options.save_summaries_secs = Seconds{0};
    options.services.save_at_end = false;  // a save flushes, too
    options.files = &disk;
    disk.look_when_free(directory.path(), directory.path(), has_mark);
  }
  static void mark(const Supervisor& sv) {
    sv.summary_writer()->flush();  // the first event is written at once
    sv.summary_writer()->add_scalar("mark", 1, 7);
  }
  void forget_events() {
    has_mark.clear();
    for (const std::string& path : event_files(directory.path())) FileSystem::real().remove(path);
  }

  LooksAtEvents disk;
  std::vector<bool> has_mark;  // each time that the directory was given back
};

TEST_F(SupervisorsLockGoesLast, ByStop) {
  for (const bool closes : {true, false}) {
    forget_events();
    Supervisor sv(options);
    const auto session = sv.prepare_or_wait_for_session();
    mark(sv);
    sv.stop({.close_summary_writer = closes});
    EXPECT_THAT(has_mark, ElementsAre(true)) << closes;
  }
}

TEST_F(SupervisorsLockGoesLast, ByAManagedSession) {
  for (const bool closes : {true, false}) {
    forget_events();
    Supervisor sv(options);
    sv.managed_session([&](Session&) { mark(sv); }, {.close_summary_writer = closes});
    EXPECT_THAT(has_mark, ElementsAre(true)) << closes;
  }
}

TEST_F(SupervisorsLockGoesLast, ByAManagedSessionThatFails) {
  for (const bool closes : {true, false}) {
    forget_events();
    Supervisor sv(options);
    const auto fail = [&](Session&) {
      mark(sv);
      throw InternalError("a bug");
    };
    EXPECT_THROW(sv.managed_session(fail, {.close_summary_writer = closes}), InternalError);
    EXPECT_THAT(has_mark, ElementsAre(true)) << closes;
  }
}

TEST_F(SupervisorsLockGoesLast, ByTheEndOfOneThatWasNotStopped) {
  {
    Supervisor sv(options);
    const auto session = sv.prepare_or_wait_for_session();
    mark(sv);
  }
  EXPECT_THAT(has_mark, ElementsAre(true));
}

TEST_F(SupervisorsLockGoesLast, ByTheEndOfOneThatWasNotStoppedWhoseWriterIsTheCallers) {
  FileWriter writer(directory.path(), {.clock = &clock});
  options.summary_writer = &writer;
  {
    Supervisor sv(options);
    const auto session = sv.prepare_or_wait_for_session();
    mark(sv);
  }
  EXPECT_THAT(has_mark, ElementsAre(true));
  EXPECT_FALSE(writer.is_closed());
}

TEST_F(SupervisorsLockGoesLast, ByAnotherSessionWithoutAStop) {
  Supervisor sv(options);
  auto session = sv.prepare_or_wait_for_session();
  mark(sv);
  sv.request_stop();
  session = sv.prepare_or_wait_for_session();
  EXPECT_THAT(has_mark, ElementsAre(true));
  sv.stop();
}

// Monitored trainings with a mirror, whose hooks' writer gets an event that nobody flushes.
class MonitoredLockGoesLast : public MonitoredFixture {
 protected:
  MonitoredLockGoesLast() {
    training = {.graph = &graph,
                .checkpoint_dir = directory.path(),
                .chief = {.mirror = {.directory = mirror.path()}},
                .files = &disk,
                .coordinator = coordinator};
    disk.look_when_free(mirror.path(), directory.path(), had_mark_at_mirror);
    disk.look_when_free(directory.path(), directory.path(), had_mark);
  }
  void train_and_mark(MonitoredSession& session) {
    session.run(train);
    const auto writer = FileWriterCache::get(directory.path());  // that of the hooks
    writer->flush();                                             // the first event is written at once
    writer->add_scalar("mark", 1, 7);
  }
  // The mirror is the one that may take longest.
  void expect_events_then_mirror_then_lock() {
    EXPECT_THAT(had_mark_at_mirror, ElementsAre(true));
    EXPECT_THAT(had_mark, ElementsAre(true));
  }

  testing::TemporaryDirectory mirror;
  LooksAtEvents disk;
  std::vector<bool> had_mark_at_mirror, had_mark;  // when each was given back
  MonitoredTrainingSessionOptions training;
};

TEST_F(MonitoredLockGoesLast, AfterTheEventsAndTheMirror) {
  monitored_training_session(training, [&](MonitoredSession& session) { train_and_mark(session); });
  expect_events_then_mirror_then_lock();
}

TEST_F(MonitoredLockGoesLast, AfterTheEventsAndTheMirrorWhereTheTrainingFails) {
  EXPECT_THROW(monitored_training_session(training,
                                          [&](MonitoredSession& session) {
                                            train_and_mark(session);
                                            throw InternalError("a bug");
                                          }),
               InternalError);
  expect_events_then_mirror_then_lock();
}

TEST_F(MonitoredLockGoesLast, AfterTheEventsAndTheMirrorWhereItIsNotClosed) {
  {
    MonitoredSession session(monitored_session_options(training));
    train_and_mark(session);
  }
  expect_events_then_mirror_then_lock();
}

}  // namespace
}  // namespace longhaul
