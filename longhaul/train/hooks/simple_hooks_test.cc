#include <future>
#include <thread>

#include "longhaul/session/step_watch.h"
#include "longhaul/train/hooks/feed_fn_hook.h"
#include "longhaul/train/hooks/final_ops_hook.h"
#include "longhaul/train/hooks/global_step_waiter_hook.h"
#include "longhaul/train/hooks/hook_fixture.h"
#include "longhaul/train/hooks/publish_weights_hook.h"

namespace longhaul {
namespace {

using testing::FakeClock;
using ::testing::HasSubstr;
using testing::ScriptedSession;

// A model that others train as well: before each run of this worker they make 400 steps.
class GlobalStepWaiterTest : public HookTest {
 protected:
  GlobalStepWaiterTest() {
    session = make_scripted_session(graph, server_);
    session->before_each_run([this](int number, const Session::Request&) {
      const auto steps = Tensor::scalar<int64_t>(400 * (number + 1));
      others_->run(step.initializer(), {{step.initial_value(), steps}});
    });
  }
  // How often the hook looks at the step, and how long it waits, before the first run.
  std::pair<int, Seconds> looks_and_wait(int64_t wait_until_step) {
    GlobalStepWaiterHook hook(wait_until_step);
    start(hook);
    const Seconds start = passing_.now();
    const SessionRunArgs nothing;
    SessionRunContext context(*session, nothing);
    EXPECT_EQ(hook.before_run(context), nullptr);
    const int looks = session->runs();
    EXPECT_EQ(hook.before_run(context), nullptr);
    EXPECT_EQ(session->runs(), looks) << "it waits only once";
    return {looks, passing_.now() - start};
  }
  const std::shared_ptr<ScriptedSession::Variables> server_ = std::make_shared<ScriptedSession::Variables>();
  const std::unique_ptr<Session> others_ = make_scripted_session(graph, server_);
  FakeClock passing_{FakeClock::Waits::kPassTime};
};

TEST_F(GlobalStepWaiterTest, ForStepZeroItDoesNotWait) {  // HO-1
  EXPECT_EQ(looks_and_wait(0), std::pair(0, Seconds{0}));
}

TEST_F(GlobalStepWaiterTest, ItLooksEveryHalfSecondUntilOthersAreThatFar) {  // HO-1
  coord = Coordinator({.clock = &passing_});
  const LogRecorder log;
  EXPECT_EQ(looks_and_wait(1000), std::pair(3, Seconds{1}));
  EXPECT_THAT(log.text(), HasSubstr("Waiting for global step 1000 before starting training."));
}

TEST_F(GlobalStepWaiterTest, AStopEndsTheWait) {
  coord.request_stop();
  EXPECT_EQ(looks_and_wait(1000), std::pair(1, Seconds{0}));
}

// A session that makes all steps itself, and notifies of them.
class NotifyingSession : public ScriptedSession, StepWatching {
 public:
  using ScriptedSession::ScriptedSession;
  SessionCapabilities capabilities() override { return {.step_watching = this}; }
  bool is_watched() const { return !watch_.expired(); }
  void step_made() const {
    if (const auto watch = watch_.lock()) watch->passed();
  }

 private:
  std::shared_ptr<const void> watch_steps(StepWatch watch) override {
    auto made = std::make_shared<const StepWatch>(std::move(watch));
    watch_ = made;
    return made;
  }
  bool sees_all_steps() const override { return true; }
  bool is_step_under_way() const override { return false; }
  uint64_t steps_ended() const override { return 0; }

  std::weak_ptr<const StepWatch> watch_;
};

class NotifiedGlobalStepWaiterTest : public GlobalStepWaiterTest {
 protected:
  NotifiedGlobalStepWaiterTest() {
    auto made = std::make_unique<NotifyingSession>(graph, server_);
    notifying_ = made.get();
    session = std::move(made);
    others_are_at(0);
  }
  void others_are_at(int64_t value) {
    others_->run(step.initializer(), {{step.initial_value(), Tensor::scalar(value)}});
    notifying_->step_made();
  }
  NotifyingSession* notifying_ = nullptr;
};

TEST_F(NotifiedGlobalStepWaiterTest, ItLooksAtEachStepAndNeverByTheClock) {  // HO-1
  coord = Coordinator({.clock = &passing_});
  session->before_each_run([this](int look, const Session::Request&) { others_are_at(1100 * look); });
  const LogRecorder log;
  EXPECT_EQ(looks_and_wait(3000), std::pair(4, Seconds{0}));
  EXPECT_FALSE(notifying_->is_watched());
  EXPECT_THAT(log.text(), HasSubstr("Waiting for global step 3000 before starting training."));
  EXPECT_THAT(log.text(), HasSubstr("It is 1100 now."));
}

TEST_F(NotifiedGlobalStepWaiterTest, AStepOfAnotherThreadEndsTheWait) {
  std::promise<void> looked;
  session->before_each_run([&](int look, const Session::Request&) {
    if (look == 0) looked.set_value();
  });
  std::thread other([&] {
    looked.get_future().wait();
    others_are_at(1000);
  });
  EXPECT_LE(looks_and_wait(1000).first, 2) << "before and after the step";  // the clock stands still
  other.join();
}

TEST_F(NotifiedGlobalStepWaiterTest, AStopOfAnotherThreadEndsTheWait) {
  std::promise<void> looked;
  session->before_each_run([&](int, const Session::Request&) { looked.set_value(); });
  std::thread other([&] {
    looked.get_future().wait();
    coord.request_stop();
  });
  EXPECT_EQ(looks_and_wait(1000).first, 1);
  other.join();
  EXPECT_FALSE(notifying_->is_watched());
}

TEST_F(HookTest, FinalOpsAreRunAtTheEnd) {  // HO-2
  FinalOpsHook hook({ops::constant(root, 42.0f), "global_step:0"});
  start(hook);
  train(hook);
  EXPECT_TRUE(hook.final_ops_values().empty());
  hook.end(*session);
  ASSERT_EQ(hook.final_ops_values().size(), 2u);
  EXPECT_EQ(hook.final_ops_values()[0].item<float>(), 42);
  EXPECT_EQ(hook.final_ops_values()[1].item<int64_t>(), 1);
}

TEST_F(HookTest, FinalOpsCanBeFed) {  // HO-2
  const Output fed = ops::placeholder(root, kFloat);
  FinalOpsHook hook({fed}, {{fed, Tensor::scalar(11.0f)}});
  hook.end(*session);
  EXPECT_EQ(hook.final_ops_values()[0].item<float>(), 11);
}

TEST_F(HookTest, FinalOpsThatReadInputAreWarnedOf) {  // HO-2
  FinalOpsHook hook({ops::count_up_to(root, step, 0)});
  const LogRecorder log;
  EXPECT_THROW(hook.end(*session), OutOfRangeError);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("depend on an input source"));
}

TEST_F(HookTest, AFunctionFeedsEachRun) {  // HO-3
  const Output fed = ops::placeholder(root, kInt64);
  const Operation add = ops::assign_add(root, step, fed).op();
  int64_t next = 1;
  FeedFnHook hook([&] { return Feeds{{fed, Tensor::scalar(next++)}}; });
  for (int i = 0; i < 3; ++i) run(hook, add);
  EXPECT_EQ(step_now(), 1 + 2 + 3);
}

using PublishWeightsHookTest = HookTest;

TEST_F(PublishWeightsHookTest, OtherThreadsGetTheWeightsOfEachSession) {
  if (!ScriptedSession::runs_on_engine()) return;  // a scripted one does not tell of its steps
  NewestWeights newest;
  PublishWeightsHook hook(newest, {.variables = {step}});
  start(hook);
  auto weights = newest.wait_for_newer(nullptr, Seconds{60});
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->step, 0);
  train(hook);
  weights = newest.wait_for_newer(weights, Seconds{60});
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->at("global_step").item<int64_t>(), 1);
  session->close();
  session = make_scripted_session(graph);
  set_step(7);
  hook.after_create_session(*session, coord);
  weights = newest.wait_for_newer(weights, Seconds{60});
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->step, 7);
  EXPECT_FALSE(newest.is_closed());
  hook.end(*session);
  EXPECT_TRUE(newest.is_closed());
}

}  // namespace
}  // namespace longhaul
