#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "longhaul/base/deadline.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/external_variable.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/session/fetch_into.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> session() { return new_session("", graph_); }
  Output add(const Output& a, const Output& b) {
    return ops::aten(root_, "aten::add.Tensor", "add", {{"self", a}, {"other", b}}).output();
  }
  static std::vector<float> floats(const Tensor& tensor) {
    const auto values = tensor.flat<float>();
    return {values.begin(), values.end()};
  }

  Graph graph_;
  Scope root_{graph_};
};

TEST_F(SessionTest, FetchesTensorsOperationsAndNames) {  // SG-2
  const Output x = ops::placeholder(root_, kFloat, {-1}, "x");
  const Output c = ops::constant(root_, Tensor::of<float>({1, 2}), "c");
  const Output sum = add(x, c);
  EXPECT_EQ(sum.shape(), Shape({-1}));
  auto sess = session();
  EXPECT_THAT(floats(sess->run(sum, {{x, Tensor::of<float>({10, 20})}})), ElementsAre(11, 22));
  EXPECT_THAT(floats(sess->run("add:0", {{"x:0", Tensor::of<float>({1, 1})}})), ElementsAre(2, 3));
  EXPECT_FALSE(sess->run(sum.op(), {{x, Tensor::of<float>({1, 1})}}).defined());
  EXPECT_THAT(floats(sess->run(sum, {{x, Tensor::of<float>({1, 1})}, {c, Tensor::of<float>({5, 6})}})),
              ElementsAre(6, 7));
  EXPECT_THROW(sess->run("nothing:0"), NotFoundError);
  EXPECT_THAT(error_of<Error>([&] { sess->run(sum); }), HasSubstr("You must feed a value for placeholder tensor 'x'"));
  EXPECT_THAT(error_of<Error>([&] { sess->run(sum, {{x, Tensor::of<int64_t>({1, 1})}}); }),
              HasSubstr("Cannot feed a int64 value"));
  EXPECT_THAT(error_of<Error>([&] { sess->run(sum, {{x, Tensor::scalar(1.f)}}); }),
              HasSubstr("Cannot feed value of shape []"));
}

TEST_F(SessionTest, RefusesOptionsOfServersByName) {
  EXPECT_THAT(error_of<UnimplementedError>([&] { new_session("", graph_, {.device_filters = {"/job:ps"}}); }),
              HasSubstr("SessionOptions::device_filters is for sessions on servers"));
  EXPECT_NO_THROW(new_session("", graph_, {.isolate_session_state = true}));
}

TEST_F(SessionTest, AnOperationThatWasRunForAValueSaysWhatToFetch) {
  const Variable v = ops::variable(root_, "hidden/weights", Tensor::scalar(3.f));
  const Output add = ops::assign_add(root_, v, v);
  auto sess = session();
  sess->run(v.initializer());
  EXPECT_EQ(sess->run("hidden/weights:0").item<float>(), 3);
  const char* const remedy =
      "'hidden/weights' was run as an operation, which returns no tensor: fetch 'hidden/weights:0'";
  EXPECT_THAT(error_of<Error>([&] { sess->run("hidden/weights").item<float>(); }), HasSubstr(remedy));
  EXPECT_THAT(error_of<Error>([&] { sess->run("hidden/weights").flat<float>(); }), HasSubstr(remedy));
  EXPECT_THAT(error_of<Error>([&] { sess->run(add, {{v.ref(), sess->run("hidden/weights")}}); }), HasSubstr(remedy));
  EXPECT_THAT(
      error_of<Error>([&] { sess->run(add.op()).item<float>(); }),
      HasSubstr("an undefined Tensor was read: it was never assigned, or it is the result of running an operation"));
}

TEST_F(SessionTest, FetchesMayBeTheMembersOfAStruct) {
  struct Sums {
    Tensor sum, doubled;
  };
  struct Outcome {
    Sums sums;
    Tensor x;
  };
  const Output x = ops::placeholder(root_, kFloat, {}, "x"), y = ops::placeholder(root_, kFloat, {}, "y");
  const Output sum = add(x, y);
  auto sess = session();
  const auto outcome = make_callable_into<Outcome>(*sess, {x, y}, sum, add(sum, sum), x);
  const Outcome result = outcome(Tensor::scalar(1.f), Tensor::scalar(2.f));
  EXPECT_EQ(result.sums.sum.item<float>(), 3);
  EXPECT_EQ(result.sums.doubled.item<float>(), 6);
  EXPECT_EQ(result.x.item<float>(), 1);
  static_assert(HoldsFetches<Outcome, 3> && !HoldsFetches<Outcome, 4> && !HoldsFetches<Outcome, 2> &&
                !HoldsFetches<int, 1>);
}

TEST_F(SessionTest, FeedsThatDoNotFitAreNamed) {
  const Output x = ops::placeholder(root_, kFloat, {-1, 4}, "images");
  const Output y = ops::placeholder(root_, kFloat, {-1, 4}, "labels");
  auto sess = session();
  const Callable call = sess->make_callable(add(x, y), {x, y});
  const Tensor value(kFloat, {2, 4});
  EXPECT_THAT(error_of<Error>([&] { call(value); }),
              HasSubstr("1 value given for 2 feeds: images:0, labels:0. Give one value for each feed, in this order"));
  EXPECT_THAT(error_of<Error>([&] { call(value, Tensor()); }),
              HasSubstr("Cannot feed an undefined Tensor for tensor 'labels:0', which is float[?,4]: it was never"));
  EXPECT_THAT(error_of<Error>([&] { call(value, Tensor(kFloat, {2, 3})); }),
              HasSubstr("Cannot feed value of shape [2,3] for tensor 'labels:0', which has shape [?,4]"));
  EXPECT_THAT(error_of<Error>([&] { sess->make_callable(x, {ops::group(root_, {}, "nothing")}); }),
              HasSubstr("nothing (NoOp) cannot be fed: it is an operation; its tensors are none"));
}

TEST_F(SessionTest, AFetchThatIsNotThereGetsTheNearestName) {
  ops::variable(root_, "hidden/weights", Tensor::scalar(3.f));
  auto sess = session();
  EXPECT_THAT(error_of<Error>([&] { sess->run("hiden/weights"); }), HasSubstr("; did you mean 'hidden/weights'?"));
  EXPECT_THAT(error_of<Error>([&] { sess->run("hiden/weights:0"); }), HasSubstr("; did you mean 'hidden/weights:0'?"));
  EXPECT_THAT(error_of<Error>([&] { sess->run(Output()); }), HasSubstr("an empty Operation or Output"));
  Graph other;
  const Output elsewhere = ops::constant(Scope(other), 1.f, "elsewhere");
  EXPECT_THAT(
      error_of<Error>([&] { sess->run(elsewhere); }),
      HasSubstr("elsewhere belongs to another graph than this session (with 1 operations; the session's graph has"));
}

TEST_F(SessionTest, VariablesLiveInTheirSession) {  // SG-1, SG-3, SG-4
  const Variable v = ops::variable(root_, "v", Tensor::of<float>({1, 2}));
  const Output doubled = ops::assign_add(root_, v, v);
  auto one = session(), other = session();
  EXPECT_THAT(error_of<Error>([&] { one->run(v); }),
              HasSubstr("Attempting to use uninitialized value v; run its initializer or restore a checkpoint first"));
  one->run(v.initializer());
  EXPECT_THAT(floats(one->run(doubled)), ElementsAre(2, 4));
  EXPECT_THAT(floats(one->run("v:0")), ElementsAre(2, 4));
  EXPECT_THROW(other->run(v), FailedPreconditionError);
  one->close();
  one->close();
  EXPECT_THAT(error_of<Error>([&] { one->run(v); }), HasSubstr("Attempted to use a closed Session."));
}

// A run that reads a variable whose reads hang until a test lets them end.
class HangingRun {
 public:
  explicit HangingRun(const Scope& root)
      : slow_(ops::external_variable(root, "slow",
                                     {.read =
                                          [this] {
                                            if (!is_told_.exchange(true)) begun_.set_value();
                                            end_.wait();
                                            return Tensor::scalar(1.f);
                                          },
                                      .assign = [](const Tensor&) {},
                                      .initial = [] { return Tensor::scalar(0.f); }})) {}
  void begin(Session& session) { begin(session, slow_); }
  // Of this, which must read the variable.
  void begin(Session& session, const Fetch& fetch) {
    session.run(slow_.initializer());
    run_ = std::async(std::launch::async, [&session, fetch] { error_of([&] { session.run(fetch); }); });
    begun_.get_future().wait();
  }
  const Variable& variable() const { return slow_; }
  void let_it_end() {
    may_end_.set_value();
    run_.wait();
  }

 private:
  std::promise<void> begun_, may_end_;
  const std::shared_future<void> end_ = may_end_.get_future().share();
  std::atomic<bool> is_told_{false};
  const Variable slow_;
  std::future<void> run_;
};

TEST_F(SessionTest, CloseReturnsWhenTheRunThatIsUnderWayHasEnded) {
  HangingRun run(root_);
  auto sess = session();
  run.begin(*sess);
  auto closed = std::async(std::launch::async, [&] { sess->close(); });
  EXPECT_EQ(closed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  run.let_it_end();
  EXPECT_EQ(closed.wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(SessionTest, CloseLeavesARunBehindThatIsStillUnderWayHalfwayToTheDeadline) {
  HangingRun run(root_);
  auto sess = session();
  run.begin(*sess);
  Deadline deadline(Clock::real());
  auto closed = std::async(std::launch::async, [&] { sess->close_before(&deadline); });
  EXPECT_EQ(closed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  deadline.bring_forward(Seconds{0.1});
  EXPECT_EQ(closed.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  run.let_it_end();
}

TEST_F(SessionTest, OfThisProcessHasAllCapabilities) {
  DirectSession session(graph_, {});
  const SessionCapabilities capabilities = session.capabilities();
  ASSERT_NE(capabilities.step_fetching, nullptr);
  ASSERT_NE(capabilities.step_watching, nullptr);
  ASSERT_NE(capabilities.snapshot_keeping, nullptr);
  EXPECT_EQ(capabilities.snapshot_keeping->snapshots(), snapshots_of(session));
}

TEST_F(SessionTest, WhoWatchesStepsIsCalledAtEachMultipleUntilItStops) {
  const Variable step = ops::create_global_step(root_);
  const Operation train = ops::assign_add(root_, step, ops::constant(root_, Tensor::scalar<int64_t>(1))).op();
  DirectSession session(graph_, {});
  session.run(step.initializer());
  int passed = 0, passed_each = 0;
  StepWatching& steps = *session.capabilities().step_watching;
  auto watch = steps.watch_steps({.step = step, .every = 2, .passed = [&] { ++passed; }});
  const auto each = steps.watch_steps({.step = step, .passed = [&] { ++passed_each; }});
  for (int i = 0; i < 5; ++i) session.run(train);
  EXPECT_EQ(passed, 2);
  EXPECT_EQ(passed_each, 5);
  watch.reset();
  session.run(train);
  EXPECT_EQ(passed, 2);
  EXPECT_EQ(passed_each, 6) << "it has its own end";
}

TEST_F(SessionTest, KnowsOfAStepUnderWay) {
  HangingRun read(root_), step(root_.sub("of_step"));
  const Variable w = ops::variable(root_, "w", ops::constant(root_, Tensor::scalar(0.f)));
  const Operation train = ops::assign(root_, w, step.variable()).op();
  DirectSession session(graph_, {});
  StepWatching& steps = *session.capabilities().step_watching;
  session.run(w.initializer());
  read.begin(session);
  EXPECT_FALSE(steps.is_step_under_way()) << "that one writes nothing";
  read.let_it_end();
  const uint64_t before = steps.steps_ended();
  step.begin(session, train);
  EXPECT_TRUE(steps.is_step_under_way());
  EXPECT_EQ(steps.steps_ended(), before + 1) << "its initial value was written, the step has not ended";
  step.let_it_end();
  EXPECT_FALSE(steps.is_step_under_way());
  EXPECT_EQ(steps.steps_ended(), before + 2);
}

TEST_F(SessionTest, SeesAllStepsUnlessOthersShareItsVariables) {
  DirectSession alone(graph_, {}), shared(graph_, {}, std::make_shared<TaskResources>());
  EXPECT_TRUE(alone.capabilities().step_watching->sees_all_steps());
  EXPECT_FALSE(shared.capabilities().step_watching->sees_all_steps());
}

TEST_F(SessionTest, ARuntimeWithoutServersHasNoTargetButThisProcess) {  // unlike SG-1
  EXPECT_THAT(error_of<Error>([&] { new_session("grpc://localhost:2222", graph_); }),
              HasSubstr("there is no session for the target 'grpc://localhost:2222'; use '' for this process"));
}

TEST_F(SessionTest, AnInitialValueMayDependOnAVariableThatIsNotInitialized) {  // SM-17
  const Variable v = ops::variable(
      root_, "v", ops::aten(root_, "aten::rand.generator", "noise", {{"size", std::vector<int64_t>{2}}}).output());
  const Variable w = ops::variable(root_, "w", add(v, v));
  const Variable x = ops::variable(root_, "x", add(w, v));
  const Operation init = ops::global_variables_initializer(root_);
  auto sess = session();
  sess->run(init);
  const auto values = sess->run({Fetch(v), Fetch(w), Fetch(x)});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(floats(values[1])[i], 2 * floats(values[0])[i]);
    EXPECT_EQ(floats(values[2])[i], floats(values[1])[i] + floats(values[0])[i]);
  }
  sess->run(ops::assign(root_, v, ops::constant(root_, Tensor::of<float>({5, 6}))).op());
  sess->run(w.initializer());
  EXPECT_THAT(floats(sess->run(w)), ElementsAre(10, 12));
  auto other = session();
  other->run(w.initializer());
  EXPECT_THROW(other->run(v), FailedPreconditionError);
  EXPECT_TRUE(other->run(w).defined());
}

TEST_F(SessionTest, TwoVariablesOfOneNameAreRefused) {  // GS-1, unlike SG-8
  ops::variable(root_, "v", Tensor::scalar(1.f));
  EXPECT_THROW(ops::variable(root_, "v", Tensor::scalar(2.f)), AlreadyExistsError);
  ops::create_global_step(root_);
  EXPECT_THAT(error_of<Error>([&] { ops::create_global_step(root_); }), HasSubstr("already exists"));
  EXPECT_EQ(ops::global_step(root_).name(), "global_step");
}

TEST_F(SessionTest, ReadsComeBeforeTheWritesOfTheirRunUnlessTheyDependOnThem) {  // GS-4
  const Variable v = ops::variable(root_, "v", Tensor::scalar(1.f));
  const Output ten = ops::constant(root_, 10.f);
  const Output added = ops::assign_add(root_, v, ten);
  const Output after = ops::read_value(root_.with_control_dependencies({added.op()}), v);
  auto sess = session();
  sess->run(v.initializer());
  const auto results = sess->run({Fetch(added), Fetch(v), Fetch(after)});
  EXPECT_EQ(results[0].item<float>(), 11);
  EXPECT_EQ(results[1].item<float>(), 1);
  EXPECT_EQ(results[2].item<float>(), 11);
}

TEST_F(SessionTest, AWriteMayBuildOnAnother) {
  const Variable a = ops::variable(root_, "a", Tensor::scalar(1.f)), b = ops::variable(root_, "b", Tensor::scalar(1.f));
  const Output x = ops::placeholder(root_, kFloat, {}, "x");
  const Output chained = ops::assign(root_, b, ops::assign(root_, a, x));
  const Output more = ops::assign_add(root_.with_control_dependencies({a.initializer()}), a, ops::constant(root_, 2.f));
  auto sess = session();
  EXPECT_EQ(sess->run(chained, {{x, Tensor::scalar(7.f)}}).item<float>(), 7);
  EXPECT_EQ(sess->run(b).item<float>(), 7);
  auto other = session();
  EXPECT_EQ(other->run(more).item<float>(), 3) << "the initializer comes first";
}

TEST_F(SessionTest, ACounterStopsAtItsLimitAndTheStateStaysWhole) {  // SG-6
  const Variable v = ops::variable(root_, "v", Tensor::scalar<int64_t>(0));
  const Output first = ops::count_up_to(root_, v, 2);
  const Output second = ops::count_up_to(root_.with_control_dependencies({first.op()}), v, 2);
  auto sess = session();
  sess->run(v.initializer());
  EXPECT_EQ(sess->run(first).item<int64_t>(), 0);
  EXPECT_THROW(sess->run({Fetch(first), Fetch(second)}), OutOfRangeError);
  sess->run(v.initializer());
  EXPECT_EQ(sess->run({Fetch(first), Fetch(second)})[1].item<int64_t>(), 1);
  EXPECT_THROW(sess->run(first), OutOfRangeError);
  EXPECT_EQ(sess->run(v, {}, {.snapshot = true}).item<int64_t>(), 2) << "nothing was half done";
}

TEST_F(SessionTest, AnUpdateGivesTheNewValue) {
  const Variable v = ops::variable(root_, "v", Tensor::of<float>({1, 2}));
  const Output rate = ops::constant(root_, 0.5f), gradient = ops::constant(root_, Tensor::of<float>({2, 2}));
  const Output update = root_.add("ApplyGradientDescent", "update", {v.ref(), rate, gradient}).output();
  auto sess = session();
  sess->run(v.initializer());
  EXPECT_THAT(floats(sess->run(update)), ElementsAre(0, 1));
  const Output slot = v.ref();
  EXPECT_THROW(root_.add("ApplyMomentum", "m", {slot, slot, rate, gradient, rate}), InvalidArgumentError);
}

TEST_F(SessionTest, AnOperatorThatWritesIntoItsArgumentsIsRefused) {
  const Output c = ops::constant(root_, Tensor::of<float>({1, 2}));
  EXPECT_THAT(error_of<Error>([&] { ops::aten(root_, "aten::add_.Tensor", "bad", {{"self", c}, {"other", c}}); }),
              HasSubstr("the operator writes into its argument 'self'"));
}

TEST_F(SessionTest, AFedPlaceholderMayBeAControlInput) {
  const Output x = ops::placeholder(root_, kFloat, {}, "x");
  const Output y = ops::constant(root_.with_control_dependencies({x.op()}), 3.f);
  EXPECT_EQ(session()->run(y, {{x, Tensor::scalar(1.f)}}).item<float>(), 3);
}

TEST_F(SessionTest, WhatWasFetchedNeverChanges) {
  const Variable v = ops::variable(root_, "v", Tensor::of<float>({1, 2}));
  const Output one = ops::constant(root_, Tensor::of<float>({1, 1}));
  const Output added = ops::assign_add(root_, v, one);
  auto sess = session();
  sess->run(v.initializer());
  const Tensor before = sess->run(v);
  sess->run(added.op());
  EXPECT_THAT(floats(before), ElementsAre(1, 2));
  EXPECT_THAT(floats(sess->run(v)), ElementsAre(2, 3));
}

TEST_F(SessionTest, ACallableRunsWithItsFeedsInOrder) {
  const Output x = ops::placeholder(root_, kFloat, {2}, "x");
  const Output y = ops::placeholder(root_, kFloat, {2}, "y");
  const Output difference = ops::aten(root_, "aten::sub.Tensor", "sub", {{"self", x}, {"other", y}}).output();
  auto sess = session();
  const Callable call = sess->make_callable(difference, {x, y});
  EXPECT_THAT(floats(call(Tensor::of<float>({5, 6}), Tensor::of<float>({1, 2}))[0]), ElementsAre(4, 4));
  EXPECT_THAT(floats(call.call({Tensor::of<float>({5, 6}), Tensor::of<float>({1, 3})})[0]), ElementsAre(4, 3));
  EXPECT_THROW(call(Tensor::of<float>({5, 6})), InvalidArgumentError);
  sess->close();
  EXPECT_THROW(call(Tensor::of<float>({5, 6}), Tensor::of<float>({1, 2})), FailedPreconditionError);
}

TEST_F(SessionTest, AFetchedBufferIsNotWrittenAgain) {
  const Output x = ops::placeholder(root_, kFloat, {2}, "x");
  const Output twice = add(x, x);
  auto sess = session();
  const Callable call = sess->make_callable(twice, {x});
  std::vector<Tensor> kept;
  for (float i = 0; i < 5; ++i) kept.push_back(call(Tensor::of<float>({i, i}))[0]);
  for (float i = 0; i < 5; ++i) EXPECT_THAT(floats(kept[static_cast<size_t>(i)]), ElementsAre(2 * i, 2 * i));
}

TEST_F(SessionTest, ManyThreadsMayRunAtOnce) {
  const Output x = ops::placeholder(root_, kFloat, {64}, "x");
  const Variable total = ops::variable(root_, "total", Tensor::of<float>(std::vector<float>(64, 0.f)));
  const Output doubled = add(x, x), count = ops::assign_add(root_, total, x);
  auto sess = session();
  sess->run(total.initializer());
  const Callable call = sess->make_callable(doubled, {x});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const Tensor mine = Tensor::of<float>(std::vector<float>(64, static_cast<float>(t)));
      for (int i = 0; i < 200; ++i) {
        const Tensor result = i % 2 == 0 ? call(mine)[0] : sess->run(doubled, {{x, mine}});
        for (float value : result.flat<float>()) wrong += value != 2 * static_cast<float>(t);
        sess->run(count.op(), {{x, mine}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_THAT(floats(sess->run(total)), ::testing::Each(200.f * (0 + 1 + 2 + 3 + 4 + 5)));
}

TEST_F(SessionTest, AUsersTensorIsNeverWrittenTo) {
  const Output x = ops::placeholder(root_, kFloat, {2}, "x");
  const Variable v = ops::variable(root_, "v", Tensor::of<float>({0, 0}));
  const Output set = ops::assign(root_, v, x);
  const Output added = ops::assign_add(root_, v, x);
  auto sess = session();
  Tensor mine = Tensor::of<float>({1, 2});
  at::Tensor aten = at::full({2}, 7.f);
  sess->run(set.op(), {{x, mine}});
  sess->run(added.op(), {{x, mine}});
  EXPECT_THAT(floats(mine), ElementsAre(1, 2));
  sess->run(set.op(), {{x, to_tensor(aten)}});
  sess->run(added.op(), {{x, to_tensor(aten)}});
  EXPECT_EQ(aten[0].item<float>(), 7.f);
  EXPECT_THAT(floats(sess->run(v)), ElementsAre(14, 14));
}

TEST_F(SessionTest, AStringVariableKeepsItsOwnCopy) {
  const Output x = ops::placeholder(root_, kString, {2}, "x");
  const Variable v = ops::variable(root_, "v", Tensor::of<std::string>({"", ""}));
  const Output set = ops::assign(root_, v, x);
  auto sess = session();
  Tensor mine = Tensor::of<std::string>({"a", "b"});
  sess->run(set.op(), {{x, mine}});
  mine.mutable_flat<std::string>()[0] = "changed";
  EXPECT_EQ(sess->run(v).flat<std::string>()[0], "a");
}

TEST_F(SessionTest, AnOperationOnADeviceThatDoesNotExistIsRefused) {  // SV-28, SG-9
  const Output c = ops::constant(root_.with_device("/cpu:1"), 1.f);
  EXPECT_THAT(error_of<Error>([&] { session()->run(c); }), HasSubstr("Cannot assign a device for operation Const"));
  EXPECT_EQ(new_session("", graph_, {.device_count = {{"CPU", 2}}})->run(c).item<float>(), 1.f);
}

TEST_F(SessionTest, FetchesVectorsOfOneKind) {
  const Output a = ops::constant(root_, 1.f), b = ops::constant(root_, 2.f);
  const auto sess = session();
  EXPECT_EQ(sess->run(std::vector<Output>{a, b})[1].item<float>(), 2.f);
  EXPECT_EQ(sess->run(std::vector<std::string>{b.name(), a.name()})[0].item<float>(), 2.f);
  EXPECT_FALSE(sess->run(std::vector<Operation>{a.op()})[0].defined());
  EXPECT_TRUE(sess->run(std::vector<Output>{}).empty());
}

TEST_F(SessionTest, AWrongCallIsRefusedWhereItIsBuilt) {
  const Output a = ops::constant(root_, Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const Output b = ops::constant(root_, Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto build = [&] { ops::aten(root_, "aten::mm", "product", {{"self", a}, {"mat2", b}}); };
  EXPECT_THAT(error_of<Error>(build), HasSubstr("product (aten::mm)"));
  EXPECT_THAT(error_of<Error>(build), HasSubstr("aten::mm(Tensor self, Tensor mat2)"));
  EXPECT_THAT(error_of<Error>(build), HasSubstr("float[3,2]"));
  EXPECT_THROW(ops::aten(root_, "aten::mm", "m", {{"self", a}}), InvalidArgumentError);
  EXPECT_THROW(ops::aten(root_, "aten::mm", "m", {{"self", a}, {"mat2", b}, {"mat3", b}}), InvalidArgumentError);
  EXPECT_THROW(ops::aten(root_, "aten::no_such", "m", {}), NotFoundError);
}

TEST_F(SessionTest, AnUnknownBatchStaysUnknown) {
  const Output x = ops::placeholder(root_, kFloat, {-1, 4});
  const Output w = ops::constant(root_, Tensor::of<float>({4, 3}, std::vector<float>(12, 0)));
  EXPECT_EQ(ops::aten(root_, "aten::mm", "mm", {{"self", x}, {"mat2", w}}).output().shape(), Shape({-1, 3}));
  const Output image = ops::placeholder(root_, kFloat, {-1, 1, 8, 8});
  const Output filter = ops::constant(root_, Tensor::of<float>({2, 1, 3, 3}, std::vector<float>(18, 1)));
  const Operation conv =
      ops::aten(root_, "aten::conv2d", "conv", {{"input", image}, {"weight", filter}, {"padding", int64_t{1}}});
  EXPECT_EQ(conv.output().shape(), Shape({-1, 2, 8, 8}));
}

TEST_F(SessionTest, ARunOverItsTimeFails) {
  const Output one = ops::constant(root_, 1.f);
  EXPECT_THROW(session()->run(add(one, one), {}, {.timeout = Seconds{1e-9}}), DeadlineExceededError);
  EXPECT_EQ(session()->run(add(one, one), {}, {.timeout = Seconds{60}}).item<float>(), 2);
}

TEST_F(SessionTest, AnErrorInARunNamesTheOperation) {
  const Output x = ops::placeholder(root_, kFloat, Shape::unknown_rank(), "x");
  const Output y = ops::aten(root_, "aten::mm", "product", {{"self", x}, {"mat2", x}}).output();
  EXPECT_THAT(error_of<Error>([&] { session()->run(y, {{x, Tensor::of<float>({1, 2})}}); }),
              HasSubstr("product (aten::mm)"));
}

}  // namespace
}  // namespace longhaul
