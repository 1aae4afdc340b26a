#include "longhaul/train/hooks/stop_at_step_hook.h"

#include <limits>

#include "longhaul/train/hooks/hook_fixture.h"

namespace longhaul {
namespace {

class StopAtStepTest : public HookTest {
 protected:
  // Whether a run that ends at this step asks for a stop.
  bool stops_at(SessionRunHook& hook, int64_t value) {
    set_step(value);
    return run(hook, nothing_);
  }
  const Operation nothing_ = ops::no_op(root);
};

TEST_F(StopAtStepTest, ItWantsANumberOfStepsOrTheLastOne) {  // HS-1
  EXPECT_THROW(StopAtStepHook({}), InvalidArgumentError);
  EXPECT_THROW(StopAtStepHook({.num_steps = 10, .last_step = 20}), InvalidArgumentError);
}

TEST_F(StopAtStepTest, TheLastStepStopsIt) {  // HS-1
  StopAtStepHook hook({.last_step = 10});
  start(hook);
  EXPECT_FALSE(stops_at(hook, 5));
  EXPECT_FALSE(stops_at(hook, 9));
  EXPECT_TRUE(stops_at(hook, 10));
  EXPECT_TRUE(stops_at(hook, 11));
}

TEST_F(StopAtStepTest, ATrainingThatIsFinishedMakesNoStepWhenItIsStartedAgain) {  // unlike HS-1
  set_step(10);
  StopAtStepHook last({.last_step = 10}), another({.last_step = 11});
  start(another);
  EXPECT_FALSE(coord.should_stop());
  const LogRecorder log;
  start(last);
  EXPECT_TRUE(coord.should_stop());
  EXPECT_THAT(log.text(), ::testing::HasSubstr("it is at step 10, and StopAtStepHook's last step is 10"));
}

TEST_F(StopAtStepTest, TheRunThatMakesTheLastStepStopsIt) {
  StopAtStepHook hook({.last_step = 2});
  start(hook);
  EXPECT_FALSE(train(hook));
  EXPECT_TRUE(train(hook));
}

TEST_F(StopAtStepTest, ANumberOfStepsCountsFromWhereTheSessionBegan) {  // HS-1
  set_step(5);
  StopAtStepHook hook({.num_steps = 10});
  start(hook);
  EXPECT_FALSE(stops_at(hook, 6));
  EXPECT_FALSE(stops_at(hook, 13));
  EXPECT_FALSE(stops_at(hook, 14));
  EXPECT_TRUE(stops_at(hook, 15));
  EXPECT_TRUE(stops_at(hook, 16));
}

TEST_F(StopAtStepTest, MoreStepsThanThereAreNumbersNeverStopIt) {
  set_step(5);
  StopAtStepHook hook({.num_steps = std::numeric_limits<int64_t>::max()});
  start(hook);
  EXPECT_FALSE(stops_at(hook, 6));
  EXPECT_FALSE(stops_at(hook, 1'000'000'000'000));
}

TEST_F(StopAtStepTest, ASessionThatReplacesALostOneDoesNotMoveTheLastStep) {  // HS-1
  StopAtStepHook hook({.num_steps = 3});
  start(hook);
  set_step(2);
  hook.after_create_session(*session, coord);
  EXPECT_TRUE(train(hook));
}

TEST_F(StopAtStepTest, AHookCanBeUsedForAnotherTraining) {
  StopAtStepHook hook({.num_steps = 1});
  start(hook);
  EXPECT_TRUE(train(hook));
  start(hook);
  EXPECT_TRUE(train(hook));
  EXPECT_EQ(step_now(), 2);
}

TEST(StopAtStep, TheGraphMustHaveAGlobalStep) {
  Graph graph;
  EXPECT_THAT(error_of([&] { StopAtStepHook({.last_step = 1}).begin(graph); }),
              ::testing::HasSubstr("Global step should be created to use StopAtStepHook"));
}

}  // namespace
}  // namespace longhaul
