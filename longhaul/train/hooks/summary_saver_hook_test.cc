#include "longhaul/train/hooks/summary_saver_hook.h"

#include "longhaul/base/deadline.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/hooks/hook_fixture.h"
#include "longhaul/train/sessions/scaffold.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SummarySaverTest : public HookTest {
 protected:
  SummarySaverHookOptions every(int64_t steps) {
    return {.save_steps = steps, .summary_writer = writer, .summary_op = {a_}, .clock = &clock};
  }
  void train_times(SessionRunHook& hook, int count, Seconds each = Seconds{0}) {
    for (int i = 0; i < count; ++i) {
      train(hook);
      clock.advance(each);
    }
  }
  const Output a_ = summary::scalar(root, "a", ops::constant(root, 1.0f));
  const Output b_ = summary::scalar(root, "b", ops::constant(root, 2.0f));
};

TEST_F(SummarySaverTest, ItWantsSummariesOrAScaffold) {  // HU-1
  auto none = every(1);
  none.summary_op.clear();
  EXPECT_THROW(SummarySaverHook{none}, InvalidArgumentError);
  auto both = every(1);
  both.scaffold = std::make_shared<Scaffold>();
  EXPECT_THROW(SummarySaverHook{both}, InvalidArgumentError);
}

TEST_F(SummarySaverTest, ItWantsSecondsOrSteps) {  // HU-1
  auto none = every(1);
  none.save_steps.reset();
  EXPECT_THROW(SummarySaverHook{none}, InvalidArgumentError);
  auto both = every(1);
  both.save_secs = Seconds{1};
  EXPECT_THROW(SummarySaverHook{both}, InvalidArgumentError);
}

TEST_F(SummarySaverTest, ItWantsAPlaceToWrite) {
  auto nowhere = every(1);
  nowhere.summary_writer = nullptr;
  EXPECT_THAT(error_of([&] { SummarySaverHook{nowhere}; }), HasSubstr("nowhere to write"));
}

TEST_F(SummarySaverTest, ADerivedHooksEndIsCalledBeforeADeadlineToo) {
  struct Derived : SummarySaverHook {
    using SummarySaverHook::SummarySaverHook;
    void end(Session& ending) override {
      ++ends;
      SummarySaverHook::end(ending);
    }
    int ends = 0;
  } hook(every(1));
  start(hook);
  train(hook);
  const Deadline deadline(clock);
  hook.end_before(*session, &deadline);
  EXPECT_EQ(hook.ends, 1);
  EXPECT_THAT(events(), ElementsAre("START 1", "summary a=1 @1"));
}

TEST_F(SummarySaverTest, ByStepsItWritesAllSummaries) {  // HU-2, HU-3
  auto options = every(8);
  options.summary_op.push_back(b_);
  SummarySaverHook hook(options);
  start(hook);
  train_times(hook, 30);
  hook.end(*session);
  EXPECT_THAT(events(), ElementsAre("START 1", "summary a=1 @1", "summary b=2 @1", "summary a=1 @9", "summary b=2 @9",
                                    "summary a=1 @17", "summary b=2 @17", "summary a=1 @25", "summary b=2 @25"));
}

TEST_F(SummarySaverTest, ASummaryIsFetchedOnlyWhenItIsDue) {  // HU-3
  SummarySaverHook hook(every(2));
  start(hook);
  train(hook);
  EXPECT_EQ(fetched, 2u);
  train(hook);
  EXPECT_EQ(fetched, 1u);
}

TEST_F(SummarySaverTest, BySecondsItWritesWhenTheyHavePassed) {  // HU-2
  auto options = every(1);
  options.save_steps.reset();
  options.save_secs = Seconds{0.5};
  SummarySaverHook often(options);
  start(often);
  train_times(often, 3, Seconds{0.5});
  EXPECT_THAT(events(), ElementsAre("START 1", "summary a=1 @1", "summary a=1 @2", "summary a=1 @3"));
}

TEST_F(SummarySaverTest, BySecondsItSkipsRunsThatComeBeforeThem) {  // HU-2
  auto options = every(1);
  options.save_steps.reset();
  options.save_secs = Seconds{9};
  SummarySaverHook hook(options);
  start(hook);
  train_times(hook, 8, Seconds{3.1});
  EXPECT_THAT(events(), ElementsAre("START 1", "summary a=1 @1", "summary a=1 @4", "summary a=1 @7"));
}

TEST_F(SummarySaverTest, EverySessionIsStartedAtItsStep) {  // unlike HU-3, TB-3
  SummarySaverHook hook(every(100));
  start(hook);
  train_times(hook, 2);
  set_step(1);
  hook.after_create_session(*session, coord);
  train(hook);
  EXPECT_THAT(events(), ElementsAre("START 1", "summary a=1 @1", "START 2", "summary a=1 @2"));
}

TEST_F(SummarySaverTest, AnotherHookMayStartTheSession) {
  auto options = every(1);
  options.write_start = false;
  SummarySaverHook hook(options);
  start(hook);
  train(hook);
  EXPECT_THAT(events(), ElementsAre("summary a=1 @1"));
}

TEST_F(SummarySaverTest, AScaffoldsSummaryIsTheOneThatItHasWhenItIsFinalized) {
  auto options = every(1);
  options.summary_op.clear();
  const auto scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.clock = &clock});
  options.scaffold = scaffold;
  adding(1);
  SummarySaverHook hook(options);
  begin(hook);
  scaffold->finalize(graph);
  hook.after_create_session(*session, coord);
  train(hook);
  EXPECT_THAT(events(), ElementsAre("START 1", "summary a=1 @1"));
  EXPECT_EQ(events_in_directory(directory.path()).back().summary().value_size(), 2) << "all that are in the graph";
}

TEST_F(SummarySaverTest, AScaffoldWithoutSummariesStartsTheSessionAlone) {
  auto options = every(1);
  options.summary_op.clear();
  options.scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.summary_op = kNone, .clock = &clock});
  SummarySaverHook hook(options);
  start(hook);
  train_times(hook, 2);
  EXPECT_THAT(events(), ElementsAre("START 1"));
}

TEST_F(SummarySaverTest, AtTheEndEverythingIsInTheFile) {  // HU-3
  SummarySaverHook hook({.save_steps = 1, .output_dir = directory.path(), .summary_op = {a_}, .clock = &clock});
  start(hook);
  train(hook);
  hook.end(*session);
  EXPECT_THAT(describe(events_in_directory(directory.path())),
              ElementsAre("version brain.Event:2", "START 1", "summary a=1 @1"));
}

TEST_F(SummarySaverTest, EventsThatCannotBeWrittenAreNoReasonToFailAtTheEnd) {
  testing::FaultyFileSystem files;
  SummarySaverHook hook(
      {.save_steps = 1, .output_dir = directory.file("full"), .summary_op = {a_}, .files = &files, .clock = &clock});
  start(hook);
  const LogRecorder log;
  files.fail_writes_after(0);
  train(hook);
  hook.end(*session);
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("event files in " + directory.file("full") + ": append "));
}

}  // namespace
}  // namespace longhaul
