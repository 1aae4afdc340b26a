#include "longhaul/train/monitored/step_context.h"

#include "longhaul/train/monitored/monitored_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class StepFunctionTest : public MonitoredFixture {
 protected:
  // A variable that each run of `add` increases by one, and a hook's runs of `add_more` by ten.
  StepFunctionTest() {
    total = ops::variable(root, "total", Tensor::scalar<int64_t>(0));
    add = ops::assign_add(root, total, ops::constant(root, int64_t{1}));
    add_more = ops::assign_add(root, total, ops::constant(root, int64_t{10}));
  }
  static int64_t number(const Tensor& tensor) { return tensor.item<int64_t>(); }

  Variable total;
  Output add, add_more;
};

TEST_F(StepFunctionTest, ItsResultIsPassedThrough) {  // MF-1
  MonitoredSession session(options);
  EXPECT_EQ(session.run_step_fn([&](StepContext& context) { return number(context.session().run(add)); }), 1);
  std::string text = session.run_step_fn([](StepContext&) { return std::string("as it is"); });
  EXPECT_EQ(text, "as it is");
  int called = 0;
  session.run_step_fn([&](StepContext&) { ++called; });
  EXPECT_EQ(called, 1);
}

template <typename StepFn>
concept IsStepFunction = requires(MonitoredSession& session, StepFn step_fn) { session.run_step_fn(step_fn); };

TEST_F(StepFunctionTest, ItTakesAContextAndNothingElse) {  // MF-1
  EXPECT_TRUE(IsStepFunction<void (*)(StepContext&)>);
  EXPECT_TRUE(IsStepFunction<int (*)(const StepContext&)>);
  EXPECT_FALSE(IsStepFunction<void (*)()>);
  EXPECT_FALSE((IsStepFunction<void (*)(StepContext&, int)>));
}

TEST_F(StepFunctionTest, AStopEndsItAtOnceAndTheLoopWell) {  // MF-2
  add_hook();
  MonitoredSession session(options);
  bool went_on = false;
  session.monitor([&] {
    session.run_step_fn([](StepContext& context) { context.request_stop(); });
    went_on = true;
  });
  EXPECT_FALSE(went_on);
  EXPECT_EQ(calls.back(), "end");
}

TEST_F(StepFunctionTest, AStopOutsideALoopReachesTheCaller) {  // MF-2
  add_hook();
  MonitoredSession session(options);
  EXPECT_THROW(session.run_step_fn([](StepContext& context) { context.request_stop(); }), StopIteration);
  EXPECT_FALSE(session.should_stop());
  EXPECT_EQ(calls.back(), "after_create_session");  // no hook has taken part
}

TEST_F(StepFunctionTest, HooksTakePartWhereItSaysSo) {  // MF-3
  const auto hook = add_hook();
  hook->wants = {.fetches = {add_more}};
  MonitoredSession session(options);
  const auto both = [&](StepContext& context) {
    const int64_t without_hooks = number(context.session().run(add));
    context.run_with_hooks(add);
    return without_hooks;
  };
  EXPECT_EQ(session.run_step_fn(both), 1);
  EXPECT_EQ(number(session.run(total)), 12);
  EXPECT_EQ(session.run_step_fn([&](StepContext& context) {
    return context.run_with_hooks(std::vector<Fetch>{total}, {}, {.timeout = Seconds{5}}).size();
  }),
            1u);
}

TEST_F(StepFunctionTest, ALostSessionMeansAllOfItAgain) {  // MF-4
  MonitoredSession session(options);
  int called = 0;
  const int64_t value = session.run_step_fn([&](StepContext& context) {
    context.run_with_hooks(add);
    if (++called == 1) throw AbortedError("preempted");
    return number(context.run_with_hooks(total));
  });
  EXPECT_EQ(called, 2);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(sessions, 2);
}

TEST_F(StepFunctionTest, ASessionLostInAHookMeansAllOfItAgain) {  // MF-4
  const auto hook = add_hook();
  int lost = 0;
  hook->on_before = [&](SessionRunContext&) {
    if (++lost == 1) throw AbortedError("preempted");
  };
  MonitoredSession session(options);
  int called = 0;
  session.run_step_fn([&](StepContext& context) {
    ++called;
    context.run_with_hooks(add);
  });
  EXPECT_EQ(called, 2);
}

TEST_F(StepFunctionTest, ASingularSessionIsNotReplaced) {  // MF-4
  SingularMonitoredSession session({.graph = &graph});
  EXPECT_THROW(session.run_step_fn([](StepContext&) { throw AbortedError("preempted"); }), AbortedError);
  EXPECT_EQ(sessions, 1);
}

TEST_F(StepFunctionTest, AfterARecoveryItHasTheNewSession) {  // unlike MF-5
  MonitoredSession session(options);
  std::vector<Session*> raw;
  session.run_step_fn([&](StepContext& context) {
    raw.push_back(&context.session());
    EXPECT_EQ(number(context.session().run(add)), 1);
    if (raw.size() == 1) throw AbortedError("preempted");
  });
  ASSERT_EQ(raw.size(), 2u);
  EXPECT_EQ(raw[1], last_session);
}

}  // namespace
}  // namespace longhaul
