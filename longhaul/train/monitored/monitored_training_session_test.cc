#include "longhaul/train/monitored/monitored_training_session.h"

#include <typeinfo>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/train/hooks/checkpoint_saver_hook.h"
#include "longhaul/train/hooks/step_counter_hook.h"
#include "longhaul/train/hooks/stop_at_step_hook.h"
#include "longhaul/train/hooks/summary_saver_hook.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/reporting/event_lines_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class MonitoredTrainingSessionTest : public MonitoredFixture {
 protected:
  MonitoredTrainingSessionTest() {
    training = {.graph = &graph, .checkpoint_dir = directory.path(), .coordinator = coordinator};
  }

  // Makes so many steps in a session, each of which takes `takes`, and returns the step that it began with.
  int64_t train_for(int steps, Seconds takes = Seconds{0}) {
    int64_t first = -1;
    monitored_training_session(training, [&](MonitoredSession& session) {
      first = session.run_step_fn([&](StepContext& context) { return context.session().run(step).item<int64_t>(); });
      for (int i = 0; i < steps; ++i) {
        session.run(train);
        clock.advance(takes);
      }
    });
    return first;
  }
  bool is_saved(int64_t at) {
    return checkpoint_exists(FileSystem::real(), directory.file(fmt::format("model.ckpt-{}", at)));
  }
  std::vector<std::string> events(const std::string& in) { return describe(events_in_directory(in)); }

  // The hooks that there are, by their classes; the test's own are told by their order.
  std::vector<std::string> hooks() {
    std::vector<std::string> names;
    for (const auto& hook : monitored_session_options(training).hooks) {
      const SessionRunHook& it = *hook;
      if (typeid(it) == typeid(StepCounterHook)) names.push_back("steps");
      if (typeid(it) == typeid(SummarySaverHook)) names.push_back("summaries");
      if (typeid(it) == typeid(CheckpointSaverHook)) names.push_back("checkpoints");
      if (typeid(it) == typeid(RecordingHook)) names.push_back("own");
      if (typeid(it) == typeid(StopAtStepHook)) names.push_back("chief's");
    }
    return names;
  }

  MonitoredTrainingSessionOptions training;
};

TEST_F(MonitoredTrainingSessionTest, TheNextOneGoesOnWhereThisOneEnds) {  // MT-1
  EXPECT_EQ(train_for(2), 0);
  EXPECT_TRUE(is_saved(2));
  EXPECT_EQ(train_for(0), 2);
}

TEST_F(MonitoredTrainingSessionTest, RunsThatDoNotGoOnAreReportedByDefault) {
  const LogRecorder log;
  const auto hangs = [&] { return log.text(LogLevel::kError).find("the training hangs") != std::string::npos; };
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    eventually([&] {
      clock.advance(Seconds{1});
      return hangs();
    });
  });
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("limit 10 min"));
}

TEST_F(MonitoredTrainingSessionTest, ASlowSaveAndASlowEndAreNoHangs) {
  const LogRecorder log;
  const auto slow = std::make_shared<RecordingHook>();
  const auto pass = [&](Seconds time) { clock.advance_before_hang_watch(time); };
  training.failures.hang.after = Seconds{20};
  training.scaffold = std::make_shared<Scaffold>();
  slow->on_end = [&](Session&) { pass(Seconds{100}); };
  training.hooks = {slow};
  std::shared_ptr<const SavedCallback> callback;
  monitored_training_session(training, [&](MonitoredSession& session) {
    callback = training.scaffold->saver()->on_saved([&](const std::string&) { pass(Seconds{100}); });
    clock.advance(Seconds{700});
    session.run(train);
    session.run(train);
  });
  EXPECT_TRUE(is_saved(2));
  EXPECT_THAT(log.text(LogLevel::kError), Not(HasSubstr("hangs")));
}

TEST_F(MonitoredTrainingSessionTest, WithoutAStateFileItMayBeginAnew) {  // CS-6, CS-9
  training.chief.recovery.search_directory = false;
  train_for(2);
  EXPECT_EQ(train_for(1), 2) << "the state file names it";
  FileSystem::real().remove(directory.file(kDefaultStateFile));
  const LogRecorder log;
  EXPECT_EQ(train_for(0), 0);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("search_directory is off: training starts from scratch"));
}

TEST_F(MonitoredTrainingSessionTest, TwoSessionsOfTheSameOptionsAreNotChiefAtOnce) {
  const MonitoredSessionOptions options = monitored_session_options(training);
  {
    MonitoredSession session(options);
    EXPECT_THROW(MonitoredSession{options}, DirectoryLockedError);
    EXPECT_NE(read_owner(FileSystem::real(), directory.path()), std::nullopt) << "the first is chief as before";
    session.close();
  }
  MonitoredSession again(options);
  again.close();
}

TEST_F(MonitoredTrainingSessionTest, ANegativeIntervalIsRefused) {
  const MonitoredTrainingSessionOptions good = training;
  for (const auto& set :
       {+[](MonitoredTrainingSessionOptions& all) { all.save_checkpoint_secs = Seconds{-1}; },
        +[](MonitoredTrainingSessionOptions& all) { all.save_checkpoint_steps = -5; },
        +[](MonitoredTrainingSessionOptions& all) { all.save_summaries_secs = Seconds{-1}; },
        +[](MonitoredTrainingSessionOptions& all) { all.save_summaries_steps = -1; },
        +[](MonitoredTrainingSessionOptions& all) { all.log_step_count_steps = -1; },
        +[](MonitoredTrainingSessionOptions& all) { all.failures.restart.max_restarts = -1; },
        +[](MonitoredTrainingSessionOptions& all) { all.failures.restart.backoff = Seconds{-1}; },
        +[](MonitoredTrainingSessionOptions& all) { all.failures.restart.max_backoff = Seconds{-1}; },
        +[](MonitoredTrainingSessionOptions& all) { all.failures.restart.healthy_after = Seconds{-1}; }}) {
    training = good;
    set(training);
    EXPECT_THROW(monitored_session_options(training), InvalidArgumentError);
  }
}

TEST_F(MonitoredTrainingSessionTest, CheckpointsAreTakenEverySoManySteps) {  // MT-2
  training.save_checkpoint_steps = 100;
  EXPECT_EQ(train_for(150), 0);
  EXPECT_TRUE(is_saved(100));
  EXPECT_TRUE(is_saved(150));
  EXPECT_FALSE(is_saved(50));
  EXPECT_EQ(train_for(0), 150);
}

TEST_F(MonitoredTrainingSessionTest, CheckpointsAreTakenEverySoManySeconds) {  // MT-2
  training.save_checkpoint_secs = Seconds{0.1};
  EXPECT_EQ(train_for(4, Seconds{0.06}), 0);
  EXPECT_FALSE(is_saved(1));
  EXPECT_FALSE(is_saved(2));
  EXPECT_TRUE(is_saved(3));
  EXPECT_EQ(train_for(0), 4);
}

TEST_F(MonitoredTrainingSessionTest, SummariesAreWrittenEverySoManySteps) {  // MT-3
  summary::scalar(root, "my_summary_tag", ops::constant(root, 3.0f));
  training.save_summaries_steps = 50;
  training.log_step_count_steps = 10;
  train_for(101, Seconds{0.5});
  const auto lines = events(directory.path());
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @1"));
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @51"));
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @101"));
  EXPECT_THAT(lines, Contains("summary global_step/sec=2 @11"));
  EXPECT_THAT(lines, Contains("summary global_step/sec=2 @101"));
}

TEST_F(MonitoredTrainingSessionTest, SummariesAreWrittenEverySoManySeconds) {  // MT-3
  summary::scalar(root, "my_summary_tag", ops::constant(root, 3.0f));
  training.save_summaries_secs = Seconds{3.1};
  train_for(5, Seconds{1});
  const auto lines = events(directory.path());
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @1"));
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @5"));
  EXPECT_THAT(lines, Not(Contains("summary my_summary_tag=3 @3")));
}

TEST_F(MonitoredTrainingSessionTest, WithoutCheckpointsItStartsAfresh) {  // MT-4
  const auto hook = std::make_shared<RecordingHook>(&calls);
  training.chief_only_hooks = {hook};
  training.save_checkpoint_secs = Seconds{0};
  train_for(2);
  EXPECT_THAT(
      calls, ElementsAre("begin", "after_create_session", "before_run", "after_run", "before_run", "after_run", "end"));
  EXPECT_EQ(train_for(0), 0);
}

TEST_F(MonitoredTrainingSessionTest, TheDefaultsAreThoseOfTheOriginal) {  // MT-5
  summary::scalar(root, "my_summary_tag", ops::constant(root, 3.0f));
  EXPECT_EQ(training.stop_grace_period_secs, Seconds{120});
  EXPECT_EQ(training.max_wait_secs, Seconds{7200});
  train_for(201, Seconds{4});
  EXPECT_FALSE(is_saved(149));
  EXPECT_TRUE(is_saved(151));  // the clock moves after each step: 600 s are over as the 151st ends
  const auto lines = events(directory.path());
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @1"));
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @101"));
  EXPECT_THAT(lines, Contains("summary my_summary_tag=3 @201"));
  EXPECT_THAT(lines, Not(Contains("summary my_summary_tag=3 @51")));
  EXPECT_THAT(lines, Contains(StartsWith("summary global_step/sec=0.25 @101")));
}

TEST_F(MonitoredTrainingSessionTest, NoneAndZeroSwitchItOff) {  // MT-5
  EXPECT_THAT(hooks(), ElementsAre("steps", "summaries", "checkpoints"));
  training.log_step_count_steps = 0;
  training.save_summaries_steps = kNone;
  EXPECT_THAT(hooks(), ElementsAre("checkpoints"));
  training.save_checkpoint_steps = 0;
  EXPECT_THAT(hooks(), IsEmpty());
  training.save_checkpoint_secs = Seconds{5};
  training.save_summaries_secs = Seconds{5};
  EXPECT_THAT(hooks(), ElementsAre("summaries", "checkpoints"));
  training.checkpoint_dir.clear();
  EXPECT_THAT(hooks(), IsEmpty());
}

TEST_F(MonitoredTrainingSessionTest, BothTimesAndStepsAreRefused) {  // MT-5
  training.save_checkpoint_secs = Seconds{5};
  training.save_checkpoint_steps = 5;
  EXPECT_THAT(error_of([&] { train_for(0); }), HasSubstr("xactly one of"));
}

TEST_F(MonitoredTrainingSessionTest, SummariesMayGoToADirectoryOfTheirOwn) {  // MT-5
  training.summary_dir = directory.file("summaries");
  summary::scalar(root, "my_summary_tag", ops::constant(root, 3.0f));
  train_for(1);
  EXPECT_THAT(events(training.summary_dir), Contains("summary my_summary_tag=3 @1"));
  EXPECT_THAT(events(directory.path()), Not(Contains("summary my_summary_tag=3 @1")));
}

TEST_F(MonitoredTrainingSessionTest, TheChiefsHooksComeFirstAndTheProgramsLast) {  // MT-6
  training.chief_only_hooks = {std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 1})};
  training.hooks = {std::make_shared<RecordingHook>()};
  EXPECT_THAT(hooks(), ElementsAre("chief's", "steps", "summaries", "checkpoints", "own"));
}

TEST_F(MonitoredTrainingSessionTest, TheOthersHaveTheProgramsHooksAndWaitForTheChief) {  // MT-6
  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  training.coordinator = Coordinator({.clock = &passing});
  training.chief_only_hooks = {std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 1})};
  training.hooks = {std::make_shared<RecordingHook>(&calls)};
  training.is_chief = false;
  training.max_wait_secs = Seconds{100};
  EXPECT_THAT(hooks(), ElementsAre("own"));
  EXPECT_THAT(error_of([&] { train_for(1); }), HasSubstr("Session was not ready after waiting 100 secs."));
  EXPECT_EQ(sessions, 1);  // for all looks
  EXPECT_THAT(calls, ElementsAre("begin"));
}

TEST_F(MonitoredTrainingSessionTest, TheOthersTrainWhatTheChiefHasInitialised) {  // MT-6
  const auto server = std::make_shared<testing::ScriptedSession::Variables>();
  install_session_factory([&](const std::string&, Graph& made_for, const SessionOptions&) {
    return make_scripted_session(made_for, server);
  });
  MonitoredSession chief(monitored_session_options(training));
  chief.run(train);
  training.is_chief = false;
  monitored_training_session(training, [&](MonitoredSession& worker) { EXPECT_EQ(train_once(worker), 2); });
  EXPECT_EQ(chief.run(step).item<int64_t>(), 2);
  EXPECT_FALSE(is_saved(2));
}

TEST_F(MonitoredTrainingSessionTest, ADirectoryThatCannotBeWrittenIsNamedWithItsOption) {
  write_file_atomically(FileSystem::real(), directory.file("file"), "");
  training.checkpoint_dir = directory.file("file") + "/run";
  EXPECT_THAT(error_of([&] { train_for(1); }),
              StartsWith("checkpoint_dir " + training.checkpoint_dir + " cannot be written to: make directory "));
}

TEST_F(MonitoredTrainingSessionTest, TwoIntervalsForOneThingAreRefusedByTheirNames) {
  training.save_checkpoint_secs = Seconds{60};
  training.save_checkpoint_steps = 100;
  EXPECT_EQ(error_of([&] { hooks(); }),
            "exactly one of save_checkpoint_secs and save_checkpoint_steps must be given, but both are");
  training.save_checkpoint_secs = Seconds{0};
  training.save_summaries_secs = Seconds{5};
  training.save_summaries_steps = 7;
  EXPECT_EQ(error_of([&] { hooks(); }),
            "exactly one of save_summaries_secs and save_summaries_steps must be given, but both are");
}

TEST_F(MonitoredTrainingSessionTest, AFinishedTrainingMakesNoMoreSteps) {  // unlike HS-1
  training.hooks = {std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 2})};
  for (const int steps : {2, 0, 0}) {
    int made = 0;
    monitored_training_session(training, [&](MonitoredSession& session) {
      for (; !session.should_stop(); ++made) session.run(train);
    });
    EXPECT_EQ(made, steps);
  }
  EXPECT_TRUE(is_saved(2));
  EXPECT_FALSE(is_saved(3));
}

TEST_F(MonitoredTrainingSessionTest, AHookSaysWhichStepIsTheLast) {  // MS-9
  const auto steps_of = [&](const StopAtStepHookOptions& stop, int64_t from) {
    training = {.graph = &graph,
                .scaffold = std::make_shared<Scaffold>(ScaffoldOptions{
                    .init_fn =
                        [&](const Scaffold&, Session& session) {
                          session.run(step.initializer(), {{step.initial_value(), Tensor::scalar(from)}});
                        }}),
                .hooks = {std::make_shared<StopAtStepHook>(stop)}};
    std::vector<int64_t> steps;
    monitored_training_session(training, [&](MonitoredSession& session) {
      while (!session.should_stop()) {
        steps.push_back(session.run_step_fn([&](StepContext& context) {
          context.run_with_hooks(train);
          return context.session().run(step).item<int64_t>();
        }));
      }
    });
    return steps;
  };
  EXPECT_THAT(steps_of({.last_step = 3}, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(steps_of({.last_step = 5}, 3), ElementsAre(4, 5));
  EXPECT_THAT(steps_of({.num_steps = 4}, 3), ElementsAre(4, 5, 6, 7));
}

TEST_F(MonitoredTrainingSessionTest, AfterAnErrorNoCheckpointIsTaken) {  // MS-5
  const auto body = [&](MonitoredSession& session) {
    session.run(train);
    throw UnknownError("the user's");
  };
  const LogRecorder log;
  EXPECT_THROW(monitored_training_session(training, body), UnknownError);
  EXPECT_TRUE(is_saved(0));
  EXPECT_FALSE(is_saved(1));
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("step 1 is in no checkpoint; the newest is " + directory.file("model.ckpt-0")));
}

TEST_F(MonitoredTrainingSessionTest, ALoopThatIgnoresAHooksStopIsSaved) {  // unlike MS-5
  training.hooks = {std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 3})};
  EXPECT_THAT(error_of([&] { train_for(10); }), HasSubstr("Run called even after should_stop requested."));
  EXPECT_TRUE(is_saved(3));
}

TEST_F(MonitoredTrainingSessionTest, AtTheEndOfTheInputACheckpointIsTaken) {  // MS-4
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    throw OutOfRangeError("no more");
  });
  EXPECT_TRUE(is_saved(1));
}

TEST_F(MonitoredTrainingSessionTest, ALostSessionGoesOnFromTheLastCheckpoint) {  // MR-4
  training.save_checkpoint_steps = 1;
  training.failures.restart.backoff = Seconds{0};
  const auto loses = std::make_shared<RecordingHook>();
  training.hooks = {loses};
  std::vector<int64_t> steps;
  monitored_training_session(training, [&](MonitoredSession& session) {
    while (steps.size() < 4) {
      loses->on_before = [&](SessionRunContext&) {
        if (steps.size() == 2 && sessions == 1) throw AbortedError("preempted");
      };
      session.run(train);
      steps.push_back(
          session.run_step_fn([&](StepContext& context) { return context.session().run(step).item<int64_t>(); }));
    }
  });
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(sessions, 2);
}

}  // namespace
}  // namespace longhaul
