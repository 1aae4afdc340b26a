#include "longhaul/train/hooks/progress_hook.h"

#include "longhaul/testing/temporary_output_fixture.h"
#include "longhaul/train/hooks/hook_fixture.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"

namespace longhaul {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProgressHookTest : public HookTest {
 protected:
  const TemporaryOutput output;
  const Variable rate = ops::variable(root, "rate", Tensor::scalar(0.125f));
};

TEST_F(ProgressHookTest, ShowsTheFirstRunAndTheEnd) {
  session->run(rate.initializer());
  set_step(5);
  ProgressHook hook({.values = {{"learning rate", rate}}, .out = output.file()});
  const auto ends = std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 100});
  hook.follow({ends}, nullptr, clock);
  start(*ends);
  start(hook);
  for (int i = 0; i < 4; ++i) train(hook);
  hook.end(*session);
  const std::vector<std::string> lines = output.lines();
  ASSERT_EQ(lines.size(), 2u) << "the second line would come after five seconds";
  EXPECT_THAT(lines[0], ContainsRegex("^step 6 of 100  learning rate 0.125  [0-9.e+]+ steps/s  .* left$"));
  EXPECT_THAT(lines[1], ContainsRegex("^step 9 of 100  [0-9.e+]+ steps/s  .* left$"));
}

TEST_F(ProgressHookTest, OtherRunsFetchTheStepAlone) {
  session->run(rate.initializer());
  ProgressHook hook({.values = {{"learning rate", rate}}, .out = output.file()});
  start(hook);
  train(hook);
  EXPECT_EQ(fetched, 2u);
  train(hook);
  EXPECT_EQ(fetched, 1u);
}

TEST_F(ProgressHookTest, WhatItCannotShowIsAnErrorAtTheBeginning) {
  EXPECT_THROW(ProgressHook({.out = nullptr}), InvalidArgumentError);
  ProgressHook of_nothing({.values = {"nothing:0"}});
  EXPECT_THROW(begin(of_nothing), NotFoundError);
  const Operation nothing = ops::no_op(root);
  ProgressHook of_operation({.values = {{"nothing", Fetch(nothing)}}});
  EXPECT_THAT([&] { begin(of_operation); },
              ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr("ProgressHook: ")));
  Graph without_step;
  EXPECT_THROW(ProgressHook().begin(without_step), FailedPreconditionError);
}

class ProgressOfASession : public MonitoredFixture {
 protected:
  MonitoredTrainingSessionOptions training(SessionRunHooks hooks) {
    return {.graph = &graph,
            .checkpoint_dir = directory.path(),
            .scaffold = scaffold,
            .hooks = std::move(hooks),
            .save_checkpoint_steps = 2,
            .coordinator = coordinator};
  }
  const TemporaryOutput output;
};

TEST_F(ProgressOfASession, KnowsTheLastStepAndTheSaves) {
  monitored_training_session(training({std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 4}),
                                       std::make_shared<ProgressHook>(ProgressOptions{.out = output.file()})}),
                             [&](MonitoredSession& monitored) {
                               while (!monitored.should_stop()) monitored.run(train);
                             });
  const std::vector<std::string> lines = output.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], ContainsRegex("^step 1 of 4 "));
  EXPECT_THAT(lines[1], ContainsRegex("^step 4 of 4 .*  0 s left  saved 0 s ago$"));
}

TEST_F(ProgressOfASession, AProcessThatSavesNothingSaysNothingOfSaves) {
  MonitoredTrainingSessionOptions options =
      training({std::make_shared<ProgressHook>(ProgressOptions{.out = output.file()})});
  options.checkpoint_dir.clear();
  monitored_training_session(options, [&](MonitoredSession& monitored) { monitored.run(train); });
  for (const std::string& line : output.lines()) EXPECT_THAT(line, ::testing::Not(HasSubstr("save")));
}

}  // namespace
}  // namespace longhaul
