// The end of a preempted training run, under both front ends, whose event files are on a disk that hangs: the journal
// gets its end and the directory is unlocked within the grace period.
#include <future>

#include "longhaul/events/file_writer_cache.h"
#include "longhaul/testing/hanging_file_system_fixture.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/sessions/scaffold.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using At = testing::HangingFileSystem::At;

class EventDiskHangs : public SupervisorFixture, public ::testing::WithParamInterface<At> {
 protected:
  EventDiskHangs() { add_step(); }
  ~EventDiskHangs() override { disk.let_go(); }

  void hang(const std::string& name = "tfevents") { disk.hang(GetParam(), name); }
  static constexpr Seconds kGrace{30};

  // `training` is preempted in its course. Time passes once the disk hangs, and until it is known.
  void expect_end_in_time(const std::function<void()>& training) {
    auto ended = std::async(std::launch::async, training);
    EXPECT_TRUE(disk.comes_to_hang());
    const Seconds limit = Clock::real().now() + Seconds{60};
    while (ended.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready && Clock::real().now() < limit) {
      if (preemption.is_preempted() && !is_known()) clock.advance(Seconds{0.1});
    }
    EXPECT_EQ(ended.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "it waits for the disk";
    EXPECT_GT(preemption.time_left().value_or(Seconds{-1}), Seconds{0});
    expect_ended_well();
    disk.let_go();
    EXPECT_NO_THROW(ended.get());
  }
  bool is_known() const { return log.text(LogLevel::kError).find("does its file system hang?") != std::string::npos; }
  void expect_ended_well() {
    EXPECT_FALSE(FileSystem::real().exists(owner_path(directory.path())));
    EXPECT_TRUE(exists(directory.file("model.ckpt-1")));
    const auto sums = parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history.sums();
    EXPECT_EQ(sums.phase, RunHistory::Phase::kStopped);
    EXPECT_TRUE(is_known());
  }

  testing::HangingFileSystem disk;
  Preemption preemption{{.grace = kGrace, .clock = &clock}};
  const LogRecorder log;
  const ThreadsEnd writers_end;
};

class SupervisorsEventDiskHangs : public EventDiskHangs {};

INSTANTIATE_TEST_SUITE_P(At, SupervisorsEventDiskHangs,
                         ::testing::Values(At::kCreate, At::kExists, At::kAppend, At::kSync, At::kClose));

TEST_P(SupervisorsEventDiskHangs, TheRestOfTheEndIsDone) {
  options.save_model_secs = options.save_summaries_secs = Seconds{0};
  options.chief.preemption = &preemption;
  options.files = &disk;
  if (GetParam() == At::kCreate) hang();
  Supervisor sv(options);
  expect_end_in_time([&] {
    sv.managed_session([&](Session& session) {
      session.run(train);
      hang();
      sv.summary_writer()->add_scalar("t", 1, 1);
      preemption.preempt();
    });
  });
}

// Of a session that was prepared by hand, whose writer is only released.
TEST_P(SupervisorsEventDiskHangs, AlsoWhereNobodyCallsStop) {
  options.save_model_secs = options.save_summaries_secs = Seconds{0};
  options.chief.preemption = &preemption;
  options.files = &disk;
  if (GetParam() == At::kCreate) hang();
  expect_end_in_time([&] {
    Supervisor sv(options);
    const auto session = sv.prepare_or_wait_for_session();
    session->run(train);
    sv.saver()->save(*session, sv.save_path(), step);
    hang();
    sv.summary_writer()->add_scalar("t", 1, 1);
    preemption.preempt();
  });
}

class MonitoredEventDiskHangs : public EventDiskHangs {};

// The file that the hooks share stays open until they are destroyed.
INSTANTIATE_TEST_SUITE_P(At, MonitoredEventDiskHangs, ::testing::Values(At::kExists, At::kAppend, At::kFlush));

TEST_P(MonitoredEventDiskHangs, TheRestOfTheEndIsDone) {
  const Coordinator program({.clock = &clock});
  expect_end_in_time([&] {
    monitored_training_session({.graph = &graph,
                                .checkpoint_dir = directory.path(),
                                .chief = {.preemption = &preemption},
                                .files = &disk,
                                .coordinator = program},
                               [&](MonitoredSession& session) {
                                 session.run(train);
                                 hang();
                                 FileWriterCache::get(directory.path())->add_scalar("t", 1, 1);
                                 preemption.preempt();
                               });
  });
}

class FullQueueOnADiskThatHangs : public EventDiskHangs {
 protected:
  // Whoever makes steps is preempted, and waits for room.
  void add_too_much(FileWriter& writer, const std::string& hanging = "tfevents") {
    const std::string large(size_t{17} << 20, 'x');
    writer.flush();
    hang(hanging);
    writer.add_graph(large);
    ASSERT_TRUE(disk.comes_to_hang());
    writer.add_graph(large);
    preemption.preempt();
    writer.add_scalar("t", 1, 1);
    EXPECT_EQ(writer.dropped_events(), 1u);
  }
  // When the last checkpoint was saved.
  static void expect_time_for_the_checkpoint(std::optional<Seconds> left) {
    ASSERT_TRUE(left.has_value());
    EXPECT_GT(*left, kGrace / 2);
  }
};

INSTANTIATE_TEST_SUITE_P(At, FullQueueOnADiskThatHangs, ::testing::Values(At::kAppend));

TEST_P(FullQueueOnADiskThatHangs, ASupervisorTakesTheLastCheckpoint) {
  options.save_model_secs = options.save_summaries_secs = Seconds{0};
  options.chief.preemption = &preemption;
  options.files = &disk;
  Supervisor sv(options);
  std::optional<Seconds> left;
  const auto watch = sv.saver()->on_saved([&](const std::string&) { left = preemption.time_left(); });
  expect_end_in_time([&] {
    sv.managed_session([&](Session& session) {
      session.run(train);
      add_too_much(*sv.summary_writer());
    });
  });
  expect_time_for_the_checkpoint(left);
}

class MonitoredFullQueue : public FullQueueOnADiskThatHangs {
 protected:
  // Of the event file in the directory `full`. What hangs are the files whose paths contain `hanging`.
  void expect_last_checkpoint(const std::string& summary_dir, const std::string& full, const std::string& hanging) {
    const Coordinator program({.clock = &clock});
    const auto scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.files = &disk, .clock = &clock});
    std::optional<Seconds> left;
    std::shared_ptr<const SavedCallback> watch;
    expect_end_in_time([&] {
      monitored_training_session(
          {.graph = &graph,
           .checkpoint_dir = directory.path(),
           .scaffold = scaffold,
           .summary_dir = summary_dir,
           .chief = {.preemption = &preemption},
           .files = &disk,
           .coordinator = program},
          [&](MonitoredSession& session) {
            session.run(train);
            watch = scaffold->saver()->on_saved([&](const std::string&) { left = preemption.time_left(); });
            add_too_much(*FileWriterCache::get(full), hanging);
          });
    });
    expect_time_for_the_checkpoint(left);
  }
};

INSTANTIATE_TEST_SUITE_P(At, MonitoredFullQueue, ::testing::Values(At::kAppend));

TEST_P(MonitoredFullQueue, TakesTheLastCheckpoint) {
  expect_last_checkpoint("", directory.path(), "tfevents");
}

TEST_P(MonitoredFullQueue, TakesTheLastCheckpointAlsoWhereItsSummariesAreElsewhere) {
  const std::string summaries = directory.file("summaries");
  expect_last_checkpoint(summaries, summaries, summaries);
}

}  // namespace
}  // namespace longhaul
