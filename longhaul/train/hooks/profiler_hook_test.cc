#include "longhaul/train/hooks/profiler_hook.h"

#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/hooks/hook_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProfilerTest : public HookTest {
 protected:
  ProfilerHookOptions every(int64_t steps) {
    return {.save_steps = steps,
            .output_dir = directory.path(),
            .summary_writer = writer,
            .files = &files_,
            .clock = &clock};
  }
  std::vector<std::string> timelines() {
    std::vector<std::string> names = FileSystem::real().list(directory.path());
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("timeline-"); });
    return names;
  }
  testing::FaultyFileSystem files_;
};

TEST_F(ProfilerTest, ItWantsSecondsOrSteps) {  // HO-4
  auto none = every(1);
  none.save_steps.reset();
  EXPECT_THROW(ProfilerHook{none}, InvalidArgumentError);
  auto both = every(1);
  both.save_secs = Seconds{1};
  EXPECT_THROW(ProfilerHook{both}, InvalidArgumentError);
}

TEST_F(ProfilerTest, TheFirstRunIsNotTraced) {  // HO-4
  ProfilerHook hook(every(1));
  start(hook);
  train(hook);
  EXPECT_THAT(timelines(), IsEmpty());
}

TEST_F(ProfilerTest, ByStepsItTracesEveryNthRun) {  // HO-4
  ProfilerHook hook(every(2));
  start(hook);
  train(hook);
  EXPECT_THAT(timelines(), IsEmpty());
  train(hook);
  EXPECT_THAT(timelines(), ElementsAre("timeline-2.json"));
  train(hook);
  EXPECT_THAT(timelines(), ElementsAre("timeline-2.json"));
  train(hook);
  EXPECT_THAT(timelines(), ElementsAre("timeline-2.json", "timeline-4.json"));
  EXPECT_THAT(events(), ElementsAre("run_metadata step_2", "run_metadata step_4"));
}

TEST_F(ProfilerTest, BySecondsItTracesWhenTheyHavePassed) {  // HO-4
  auto by_time = every(1);
  by_time.save_steps.reset();
  by_time.save_secs = Seconds{2};
  ProfilerHook hook(by_time);
  start(hook);
  train(hook);
  clock.advance(Seconds{2.5});
  train(hook);
  EXPECT_THAT(timelines(), ElementsAre("timeline-2.json"));
  train(hook);
  clock.advance(Seconds{2});
  train(hook);
  EXPECT_THAT(timelines(), ElementsAre("timeline-2.json", "timeline-4.json"));
}

TEST_F(ProfilerTest, TheTraceNamesTheOperations) {  // HO-4
  ProfilerHook hook(every(1));
  start(hook);
  train(hook);
  train(hook);
  EXPECT_THAT(read_file(FileSystem::real(), directory.file("timeline-2.json")),
              AllOf(HasSubstr("traceEvents"), HasSubstr("AssignAdd")));
}

TEST_F(ProfilerTest, AFullDiskCostsTheTraceAlone) {
  ProfilerHook hook(every(2));
  start(hook);
  train(hook);
  files_.fail_writes_after(0);
  const LogRecorder log;
  train(hook);
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("the trace of step 2 is incomplete"));
  EXPECT_THAT(timelines(), IsEmpty());
}

TEST_F(ProfilerTest, AStepThatIsMadeAgainIsTracedAgain) {
  ProfilerHook hook(every(2));
  start(hook);
  const LogRecorder log;
  for (int i = 0; i < 2; ++i) {
    set_step(0);
    hook.after_create_session(*session, coord);
    train(hook);
    train(hook);
  }
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
  EXPECT_THAT(timelines(), ElementsAre("timeline-2.json"));
  EXPECT_THAT(events(), ElementsAre("run_metadata step_2", "run_metadata step_2_2"));
}

}  // namespace
}  // namespace longhaul
