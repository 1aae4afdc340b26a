#include "longhaul/train/hooks/logging_tensor_hook.h"

#include "longhaul/train/hooks/hook_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LoggingTensorTest : public HookTest {
 protected:
  // Whether something is logged by this run, and by the end.
  bool run_logs(LoggingTensorHook& hook) {
    const LogRecorder log;
    train(hook);
    return !log.text().empty();
  }
  std::string end_logs(LoggingTensorHook& hook) {
    const LogRecorder log;
    hook.end(*session);
    return log.text();
  }
  const Output t_ = ops::constant(root, 42.0f, "t");
};

TEST_F(LoggingTensorTest, ItWantsAnIntervalOrTheEnd) {  // HL-1
  EXPECT_THAT(error_of([&] { LoggingTensorHook({.tensors = {t_}, .every_n_iter = 0}); }),
              HasSubstr("nvalid every_n_iter"));
  EXPECT_THAT(error_of([&] { LoggingTensorHook({.tensors = {t_}, .every_n_iter = -10}); }),
              HasSubstr("nvalid every_n_iter"));
  EXPECT_THAT(error_of([&] { LoggingTensorHook({.tensors = {t_}, .every_n_iter = 5, .every_n_secs = Seconds{5}}); }),
              HasSubstr("xactly one of"));
  EXPECT_THAT(error_of([&] { LoggingTensorHook({.tensors = {t_}}); }), HasSubstr("xactly one of"));
  EXPECT_THAT(error_of([&] { LoggingTensorHook({.every_n_iter = 5}); }), HasSubstr("no tensors"));
}

TEST_F(LoggingTensorTest, ByRunsItLogsTheFirstAndEveryNthAfterIt) {  // HL-2
  LoggingTensorHook hook({.tensors = {t_.name()}, .every_n_iter = 10});
  start(hook);
  EXPECT_TRUE(run_logs(hook));
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(run_logs(hook)) << i;
  EXPECT_TRUE(run_logs(hook));
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(run_logs(hook)) << i;
  EXPECT_EQ(end_logs(hook), "");
}

TEST_F(LoggingTensorTest, BeginStartsTheCountAnew) {  // HL-2
  LoggingTensorHook hook({.tensors = {t_}, .every_n_iter = 10});
  for (int i = 0; i < 2; ++i) {
    begin(hook);
    EXPECT_TRUE(run_logs(hook));
    EXPECT_FALSE(run_logs(hook));
  }
}

TEST_F(LoggingTensorTest, BySecondsItLogsWhenTheyHavePassed) {  // HL-2
  LoggingTensorHook hook({.tensors = {t_}, .every_n_secs = Seconds{1}, .clock = &clock});
  start(hook);
  EXPECT_TRUE(run_logs(hook));
  EXPECT_FALSE(run_logs(hook));
  clock.advance(Seconds{1});
  EXPECT_TRUE(run_logs(hook));
}

TEST_F(LoggingTensorTest, AtTheEndItLogsOnceMore) {  // HL-2
  LoggingTensorHook hook({.tensors = {t_}, .every_n_iter = 10, .at_end = true});
  start(hook);
  EXPECT_TRUE(run_logs(hook));
  EXPECT_FALSE(run_logs(hook));
  EXPECT_THAT(end_logs(hook), HasSubstr("t:0 = 42"));
}

TEST_F(LoggingTensorTest, AtTheEndAloneItLogsNothingBefore) {  // HL-2
  LoggingTensorHook hook({.tensors = {t_}, .at_end = true});
  start(hook);
  EXPECT_FALSE(run_logs(hook));
  EXPECT_EQ(end_logs(hook), "t:0 = 42\n");
}

TEST_F(LoggingTensorTest, TheLineHasTheValuesAndFromTheSecondOnTheTime) {  // HL-3
  ops::constant(root, 0.1f, "rate");
  LoggingTensorHook hook(
      {.tensors = {{"step", step}, {"rate", "rate:0"}, {"name", ops::constant(root, Tensor::scalar("x"))}},
       .every_n_iter = 1,
       .clock = &clock});
  start(hook);
  const LogRecorder log;
  set_step(1234567);
  train(hook);
  EXPECT_EQ(log.text(), "step = 1234567, rate = 0.1, name = x\n");
  clock.advance(Seconds{0.25});
  train(hook);
  EXPECT_THAT(log.text(), HasSubstr("step = 1234568, rate = 0.1, name = x (0.250 sec)\n"));
}

TEST_F(LoggingTensorTest, ATensorIsLoggedUnderItsOwnNameUnlessItIsGivenAnother) {
  LoggingTensorHook hook({.tensors = {step, t_, "t:0", {"the answer", t_}}, .every_n_iter = 1});
  start(hook);
  const LogRecorder log;
  train(hook);
  EXPECT_EQ(log.text(), "global_step = 0, t:0 = 42, t:0 = 42, the answer = 42\n");
}

TEST_F(LoggingTensorTest, AFormatterMakesTheLine) {  // HL-3
  LoggingTensorHook hook({.tensors = {t_}, .every_n_iter = 10, .formatter = [](const auto& values) {
                            return fmt::format("qqq={:.1f}", values.at("t:0").template item<float>());
                          }});
  start(hook);
  const LogRecorder log;
  train(hook);
  EXPECT_EQ(log.text(), "qqq=42.0\n");
}

TEST_F(LoggingTensorTest, WhatIsNotDueIsNotFetched) {
  LoggingTensorHook hook({.tensors = {t_}, .every_n_iter = 2});
  start(hook);
  train(hook);
  EXPECT_EQ(fetched, 1u);
  train(hook);
  EXPECT_EQ(fetched, 0u);
}

TEST_F(LoggingTensorTest, WhatTheGraphDoesNotHaveIsRefusedAtTheBeginning) {
  LoggingTensorHook missing({.tensors = {"missing:0"}, .every_n_iter = 1});
  EXPECT_THROW(begin(missing), NotFoundError);
  LoggingTensorHook operation({.tensors = {"t"}, .every_n_iter = 1});
  EXPECT_THAT(error_of([&] { begin(operation); }), HasSubstr("LoggingTensorHook: t is an operation"));
}

}  // namespace
}  // namespace longhaul
