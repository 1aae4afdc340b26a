#include "longhaul/train/hooks/step_counter_hook.h"

#include <limits>

#include "longhaul/ops/external_variable.h"
#include "longhaul/train/hooks/hook_fixture.h"
#include "longhaul/train/reporting/step_rate.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class StepCounterTest : public HookTest {
 protected:
  // Runs of `by` steps, one every eighth of a second.
  void train_times(SessionRunHook& hook, int count, int64_t by = 1) {
    for (int i = 0; i < count; ++i) {
      clock.advance(Seconds{0.125});
      train(hook, by);
    }
  }
  int warnings(const LogRecorder& log) {
    int count = 0;
    const std::string text = log.text(LogLevel::kWarning);
    for (size_t at = text.find("has not been increased"); at != std::string::npos;
         at = text.find("has not been increased", at + 1)) {
      ++count;
    }
    return count;
  }
  StepCounterHookOptions options() { return {.summary_writer = writer, .clock = &clock}; }
};

TEST_F(StepCounterTest, ItWantsStepsOrSeconds) {  // HN-1
  EXPECT_THROW(StepCounterHook({.every_n_steps = 10, .every_n_secs = Seconds{1}}), InvalidArgumentError);
  EXPECT_THROW(StepCounterHook({.every_n_steps = std::nullopt}), InvalidArgumentError);
}

TEST_F(StepCounterTest, ByStepsItWritesFromTheSecondTimeOn) {  // HN-1
  auto with = options();
  with.every_n_steps = 10;
  StepCounterHook hook(with);
  start(hook);
  const LogRecorder log;
  train_times(hook, 30);
  EXPECT_THAT(events(), ElementsAre("summary global_step/sec=8 @11", "summary global_step/sec=8 @21"));
  EXPECT_EQ(log.text(), "global_step/sec: 8\nglobal_step/sec: 8\n");
}

TEST_F(StepCounterTest, BySecondsItWritesWhenTheyHavePassed) {  // HN-1
  auto with = options();
  with.every_n_steps = std::nullopt;
  with.every_n_secs = Seconds{0.1};
  StepCounterHook hook(with);
  start(hook);
  train(hook);
  clock.advance(Seconds{0.25});
  train(hook);
  clock.advance(Seconds{0.25});
  train(hook);
  EXPECT_THAT(events(), ElementsAre("summary global_step/sec=4 @2", "summary global_step/sec=4 @3"));
}

TEST_F(StepCounterTest, TheTagIsThatOfTheGraphsGlobalStep) {  // HN-1
  Graph other;
  const Scope scope(other);
  const Variable counter = ops::variable(scope.sub("bar"), "foo", Tensor::scalar<int64_t>(0), {.trainable = false});
  other.add_to_collection(collections::kGlobalStep, counter.info());
  const Operation train = ops::assign_add(scope, counter, ops::constant(scope, int64_t{1})).op();
  const auto on_other = make_scripted_session(other);
  on_other->run(counter.initializer());
  session->close();

  auto with = options();
  with.every_n_steps = 1;
  StepCounterHook hook(with);
  hook.begin(other);
  const SessionRunArgs nothing;
  SessionRunContext context(*on_other, nothing);
  for (int i = 0; i < 2; ++i) {
    std::vector<Fetch> fetches = hook.before_run(context)->fetches;
    fetches.push_back(train);
    clock.advance(Seconds{1});
    hook.after_run(context, {.results = on_other->run(fetches)});
  }
  EXPECT_THAT(events(), ElementsAre("summary bar/foo/sec=1 @2"));
}

struct SeveralSteps {
  int64_t per_run, every;
  int runs;
  std::vector<std::string> events;
};
class SeveralStepsTest : public StepCounterTest, public ::testing::WithParamInterface<SeveralSteps> {};

TEST_P(SeveralStepsTest, ARunMayMakeSeveralSteps) {  // HN-2
  auto with = options();
  with.every_n_steps = GetParam().every;
  with.steps_per_run = GetParam().per_run;
  StepCounterHook hook(with);
  start(hook);
  train_times(hook, GetParam().runs, GetParam().per_run);
  EXPECT_EQ(events(), GetParam().events);
}

INSTANTIATE_TEST_SUITE_P(
    All, SeveralStepsTest,
    ::testing::Values(SeveralSteps{5, 10, 5, {"summary global_step/sec=40 @15", "summary global_step/sec=40 @25"}},
                      SeveralSteps{5,
                                   5,
                                   4,
                                   {"summary global_step/sec=40 @10", "summary global_step/sec=40 @15",
                                    "summary global_step/sec=40 @20"}},
                      SeveralSteps{10,
                                   5,
                                   5,
                                   {"summary global_step/sec=80 @20", "summary global_step/sec=80 @30",
                                    "summary global_step/sec=80 @40", "summary global_step/sec=80 @50"}}));

TEST_F(StepCounterTest, AStepThatStandsStillIsWarnedOfFiveTimes) {  // unlike HN-3
  StepCounterHook hook(options());
  start(hook);
  const LogRecorder log;
  const Operation nothing = ops::no_op(root);
  for (int i = 0; i < 9; ++i) run(hook, nothing);
  EXPECT_EQ(warnings(log), 0);
  run(hook, nothing);
  EXPECT_EQ(warnings(log), 1);
  EXPECT_THAT(log.text(), ::testing::ContainsRegex("global step.*has not been increased"));
  for (int i = 0; i < 90; ++i) run(hook, nothing);
  EXPECT_EQ(warnings(log), 2);
  for (int i = 0; i < 99900; ++i) run(hook, nothing);
  EXPECT_EQ(warnings(log), 5);
  for (int i = 0; i < 1000; ++i) run(hook, nothing);
  EXPECT_EQ(warnings(log), 5);
}

TEST_F(StepCounterTest, RunsThatOnlyReadBetweenStepsAreNoFault) {  // unlike HN-3
  StepCounterHook hook(options());
  start(hook);
  const LogRecorder log;
  const Operation reading = ops::no_op(root);
  for (int step = 0; step < 3; ++step) {
    train(hook);
    for (int i = 0; i < 20; ++i) run(hook, reading);
  }
  EXPECT_EQ(warnings(log), 0);
}

TEST_F(StepCounterTest, ABoundProgramIsToldWhatCountsItsSteps) {
  ops::program_step(root, step, {}, [](int64_t, const std::vector<Tensor>&) {});
  StepCounterHook hook(options());
  start(hook);
  const LogRecorder log;
  const Operation nothing = ops::no_op(root);
  for (int i = 0; i < 10; ++i) run(hook, nothing);
  EXPECT_EQ(warnings(log), 1);
  EXPECT_THAT(log.text(), AllOf(HasSubstr("run TorchTraining::train_op for each step"), Not(HasSubstr("minimize()"))));
}

TEST_F(StepCounterTest, AStepThatGrowsIsNotWarnedOf) {  // HN-3
  StepCounterHook hook(options());
  start(hook);
  const LogRecorder log;
  train_times(hook, 20);
  EXPECT_EQ(warnings(log), 0);
}

TEST_F(StepCounterTest, WhereNoTimePassesTheSpeedIsInfinite) {  // unlike HN-4
  auto with = options();
  with.every_n_steps = 1;
  StepCounterHook hook(with);
  start(hook);
  train(hook);
  train(hook);
  EXPECT_THAT(events(), ElementsAre("summary global_step/sec=inf @2"));
  EXPECT_EQ(steps_per_second(0, Seconds{0}), 0);
  EXPECT_EQ(steps_per_second(3, Seconds{2}), 1.5);
}

TEST_F(StepCounterTest, AfterALostSessionItCountsAnew) {
  auto with = options();
  with.every_n_steps = 10;
  StepCounterHook hook(with);
  start(hook);
  train_times(hook, 11);
  set_step(3);
  hook.after_create_session(*session, coord);
  const LogRecorder log;
  train_times(hook, 11);
  EXPECT_THAT(events(), ElementsAre("summary global_step/sec=8 @11", "summary global_step/sec=8 @14"));
  EXPECT_EQ(warnings(log), 0);
}

TEST_F(StepCounterTest, ASessionThatIsRestoredToTheStepBeforeIsNotWarnedOf) {
  StepCounterHook hook(options());
  start(hook);
  set_step(3);
  train(hook);
  set_step(3);
  hook.after_create_session(*session, coord);
  const LogRecorder log;
  train(hook);
  EXPECT_EQ(warnings(log), 0);
}

TEST_F(StepCounterTest, AStepThatIsNotThereYetIsNotCounted) {
  auto with = options();
  with.every_n_steps = 2;
  StepCounterHook hook(with);
  start(hook);
  train_times(hook, 2);
  clock.advance(Seconds{1});
  run(hook, ops::no_op(root));  // should be step 3 after it
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(StepCounterTest, ItTellsWhereTheSessionStartsIfItIsAskedTo) {  // unlike HN-1
  auto with = options();
  with.write_start = true;
  StepCounterHook hook(with);
  set_step(7);
  start(hook);
  train_times(hook, 2);
  EXPECT_THAT(events(), ElementsAre("START 8"));
}

TEST_F(StepCounterTest, ADirectoryIsEnough) {
  writer->close();
  StepCounterHook hook({.every_n_steps = 1, .output_dir = directory.path(), .clock = &clock});
  start(hook);
  train_times(hook, 2);
  hook.end(*session);
  EXPECT_THAT(describe(events_in_directory(directory.path())),
              ElementsAre("version brain.Event:2", "summary global_step/sec=8 @2"));
}

TEST_F(StepCounterTest, WithoutAPlaceToWriteItLogsOnly) {
  StepCounterHook hook({.every_n_steps = 1, .write_start = true, .clock = &clock});
  start(hook);
  const LogRecorder log;
  train_times(hook, 2);
  EXPECT_EQ(log.text(), "global_step/sec: 8\n");
  EXPECT_THAT(events(), IsEmpty());
}

}  // namespace
}  // namespace longhaul
