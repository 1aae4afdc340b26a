// A preemption in a monitored training.
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/hooks/checkpoint_saver_hook.h"
#include "longhaul/train/hooks/hook_fixture.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/signals/preemption.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class PreemptedTrainingTest : public MonitoredFixture {
 protected:
  PreemptedTrainingTest() {
    disk.before_rename = [this](const std::string&, const std::string& to) {
      if (to.ends_with(".index")) clock.advance(save_takes);
    };
  }
  MonitoredTrainingSessionOptions training() {
    return {.graph = &graph,
            .checkpoint_dir = directory.path(),
            .chief = {.preemption = &preemption},
            .files = &disk,
            .coordinator = coordinator};
  }
  // Trains until a stop; `after_step` is called with the number of each step.
  int64_t train_until_stopped(const std::function<void(int64_t)>& after_step) {
    int64_t steps = 0;
    monitored_training_session(training(), [&](MonitoredSession& session) {
      while (!session.should_stop()) {
        session.run(train);
        after_step(++steps);
      }
    });
    return steps;
  }
  bool has_checkpoint(int64_t step_number) {
    return checkpoint_exists(disk, directory.file("model.ckpt-" + std::to_string(step_number)));
  }

  BadDisk disk;
  Seconds save_takes{0};
  Preemption preemption{{.clock = &clock}};
};

TEST_F(PreemptedTrainingTest, EndsAfterItsStepWithACheckpointOfIt) {
  const int64_t steps = train_until_stopped([&](int64_t number) {
    if (number == 3) preemption.preempt();
  });
  EXPECT_EQ(steps, 3);
  EXPECT_TRUE(has_checkpoint(3));
  EXPECT_TRUE(coordinator.should_stop());
}

TEST_F(PreemptedTrainingTest, WithoutADirectoryNoCheckpointIsPromised) {
  MonitoredTrainingSessionOptions options = training();
  options.checkpoint_dir.clear();
  const LogRecorder log;
  monitored_training_session(options, [&](MonitoredSession&) { preemption.preempt(Seconds{9}); });
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("with 9 s for the step ("));
}

TEST_F(PreemptedTrainingTest, WithADirectoryACheckpointIsPromised) {
  const LogRecorder log;
  monitored_training_session(training(), [&](MonitoredSession&) { preemption.preempt(Seconds{9}); });
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("with 9 s for the step and a last checkpoint ("));
}

TEST_F(PreemptedTrainingTest, HasNoLastCheckpointThatDoesNotFit) {
  const LogRecorder log;
  save_takes = Seconds{8};
  train_until_stopped([&](int64_t number) {
    if (number == 3) preemption.preempt(Seconds{7});
  });
  EXPECT_TRUE(has_checkpoint(0));
  EXPECT_FALSE(has_checkpoint(3));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("model.ckpt-0, and steps 1 to 3 are lost"));
}

TEST_F(PreemptedTrainingTest, SavesWhenItIsAskedToAndGoesOn) {
  const int64_t steps = train_until_stopped([&](int64_t number) {
    EXPECT_EQ(has_checkpoint(3), number >= 3);
    if (number == 2) preemption.request_save();
    if (number == 5) preemption.preempt();
  });
  EXPECT_EQ(steps, 5);
  EXPECT_TRUE(has_checkpoint(5));
}

TEST_F(PreemptedTrainingTest, AHookThatIsMadeByHandHasThePreemptionOfItsSession) {
  const LogRecorder log;
  save_takes = Seconds{8};
  const auto saves = std::make_shared<Scaffold>(ScaffoldOptions{.files = &disk, .clock = &clock});
  const auto hook = std::make_shared<CheckpointSaverHook>(CheckpointSaverHookOptions{
      .checkpoint_dir = directory.path(), .save_steps = 100, .scaffold = saves, .files = &disk, .clock = &clock});
  MonitoredSession session({.session_creator = std::make_shared<ChiefSessionCreator>(ChiefSessionCreatorOptions{
                                .graph = &graph, .scaffold = saves, .coordinator = coordinator}),
                            .hooks = {hook},
                            .coordinator = coordinator,
                            .preemption = &preemption});
  session.monitor([&] {
    for (int64_t steps = 1; !session.should_stop(); ++steps) {
      session.run(train);
      if (steps == 2) preemption.request_save();
      if (steps == 5) preemption.preempt(Seconds{7});
    }
  });
  EXPECT_TRUE(has_checkpoint(3)) << "a signal asked for it";
  EXPECT_FALSE(has_checkpoint(5));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("model.ckpt-3, and steps 4 to 5 are lost"));
}

TEST_F(PreemptedTrainingTest, ClosesItsSessionBeforeTheDeadline) {
  std::optional<Seconds> left;
  install_session_factory([&](const std::string&, Graph& made_for, const SessionOptions&) {
    return std::make_unique<TimedSession>(made_for, left);
  });
  train_until_stopped([&](int64_t) { preemption.preempt(Seconds{7}); });
  EXPECT_EQ(left, Seconds{7});
}

TEST_F(PreemptedTrainingTest, AStopThatCameBeforeItIsHeeded) {
  preemption.preempt();
  EXPECT_EQ(train_until_stopped([](int64_t) {}), 0);
}

// Which answers only when it is left out.
TEST_F(PreemptedTrainingTest, SearchesTheMirrorNoLongerThanThePreemptionLeaves) {
  const LogRecorder log;
  const testing::TemporaryDirectory mirror;
  const ThreadsEnd search;  // which uses what is above
  write_file_atomically(FileSystem::real(), mirror.file("checkpoint"), "model_checkpoint_path: \"model.ckpt-7\"\n");
  disk.before_open = [&](const std::string& path) {
    if (!path.starts_with(mirror.path())) return;
    eventually([&] { return log.text().find("is not searched") != std::string::npos; });
  };
  MonitoredTrainingSessionOptions options = training();
  options.chief.mirror = {.directory = mirror.path(), .start_timeout = Seconds{20}};
  preemption.preempt(Seconds{0});
  monitored_training_session(options, [](MonitoredSession& session) { EXPECT_TRUE(session.should_stop()); });
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("no answer in the time that a preemption leaves"));
}

// Counts the checkpoints that it is told of.
class Listener : public CheckpointSaverListener {
 public:
  bool after_save(Session&, int64_t) override {
    ++saves;
    return false;
  }
  void save_failed(Session&, int64_t) override { ++failures; }
  int saves = 0, failures = 0;
};

TEST_F(HookTest, ToListenersALastCheckpointThatIsLeftOutHasFailed) {
  Preemption preemption({.clock = &clock});
  const auto listener = std::make_shared<Listener>();
  CheckpointSaverHook hook({.checkpoint_dir = directory.path(),
                            .save_steps = 100,
                            .saver = std::make_shared<Saver>(SaverOptions{.graph = &graph, .clock = &clock}),
                            .listeners = {listener},
                            .summary_writer = writer,
                            .preemption = &preemption,
                            .clock = &clock});
  set_step(0);
  start(hook);
  train(hook);
  preemption.preempt(Seconds{1});
  clock.advance(Seconds{2});
  hook.end(*session);
  EXPECT_EQ(listener->saves, 1);
  EXPECT_EQ(listener->failures, 1);
}

}  // namespace
}  // namespace longhaul
