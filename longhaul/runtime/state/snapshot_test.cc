#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A model of several variables; a training step adds one to every element of each.
class SnapshotTest : public ::testing::Test {
 protected:
  static constexpr int kVariables = 8;

  void SetUp() override {
    const Output one = ops::constant(root_, Tensor::of<float>({64}, std::vector<float>(64, 1.f)));
    std::vector<Operation> updates, initializers;
    for (int i = 0; i < kVariables; ++i) {
      variables_.push_back(
          ops::variable(root_, fmt::format("v{}", i), Tensor::of<float>({64}, std::vector<float>(64, 0.f))));
      initializers.push_back(variables_.back().initializer());
      updates.push_back(ops::assign_add(root_, variables_.back(), one).op());
    }
    train_ = ops::group(root_, updates, "train");
    init_ = ops::group(root_, initializers, "init");
    failing_train_ = add_failing_step(one);
    session_ = std::make_unique<DirectSession>(graph_, SessionOptions{});
    session_->run(init_);
  }

  // A step that fails between its first write and its second.
  Operation add_failing_step(const Output& one) {
    const Operation first = ops::assign_add(root_, variables_[0], one).op();
    const Operation fail =
        ops::host_function(root_.with_control_dependencies({first}), {}, {},
                           [](const auto&) -> std::vector<Tensor> { throw UnavailableError("the power went"); });
    const Operation second = ops::assign_add(root_.with_control_dependencies({fail}), variables_[1], one).op();
    return ops::group(root_, {first, second}, "failing_train");
  }

  std::vector<Tensor> snapshot() {
    std::vector<Fetch> fetches(variables_.begin(), variables_.end());
    return session_->run(fetches, {}, {.snapshot = true});
  }

  static std::pair<float, float> extremes(const std::vector<Tensor>& tensors) {
    float least = tensors[0].flat<float>()[0], most = least;
    for (const Tensor& tensor : tensors) {
      for (float value : tensor.flat<float>()) {
        least = std::min(least, value);
        most = std::max(most, value);
      }
    }
    return {least, most};
  }

  int64_t copies() {
    int64_t sum = 0;
    for (const Variable& variable : variables_)
      sum += session_->resources().variables().slot(variable.name())->copies();
    return sum;
  }

  Graph graph_;
  Scope root_{graph_};
  std::vector<Variable> variables_;
  Operation train_, init_, failing_train_;
  std::unique_ptr<DirectSession> session_;
};

// Runs `body` on several threads until the object ends.
class Background {
 public:
  Background(int threads, const std::function<void()>& body) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, body] {
        while (!stop_.load()) body();
      });
    }
  }
  ~Background() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_F(SnapshotTest, NeverMixesTwoStepsWhileThreadsTrain) {
  const Callable step = session_->make_callable(train_);
  const Background training(4, [&] { step(); });
  std::vector<std::vector<Tensor>> held;
  for (int i = 0; i < 200; ++i) {
    held.push_back(snapshot());
    const auto [least, most] = extremes(held.back());
    ASSERT_EQ(least, most) << "snapshot " << i;
  }
  for (const auto& earlier : held) {
    const auto [least, most] = extremes(earlier);
    ASSERT_EQ(least, most) << "a snapshot changed after it was taken";
  }
  EXPECT_LE(extremes(held.front()).first, extremes(held.back()).first);
}

TEST_F(SnapshotTest, NothingIsCopiedWhileNobodyHoldsOne) {
  const Callable step = session_->make_callable(train_);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(copies(), 0);
  snapshot();
  step();
  EXPECT_EQ(copies(), 0) << "it was let go before the step";
  const std::vector<Tensor> held = snapshot();
  step();
  step();
  EXPECT_EQ(copies(), kVariables) << "once for each variable, by the first step after it";
  EXPECT_EQ(extremes(held).first, 101);
  EXPECT_EQ(extremes(snapshot()).first, 103);
}

TEST_F(SnapshotTest, AStepThatThrewHalfwayIsNeverGiven) {
  std::string error;
  try {
    session_->run(failing_train_);
  } catch (const UnavailableError& e) {
    error = e.what();
  }
  EXPECT_NE(error, "");
  try {
    snapshot();
    FAIL() << "the middle of a step was given";
  } catch (const FailedPreconditionError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("failed after it had written some of its variables"),
                                HasSubstr("The error of the step: " + error)));
  }
  session_->run(init_);
  EXPECT_EQ(extremes(snapshot()).second, 0);
}

TEST_F(SnapshotTest, AWrongCallIsFoundBeforeTheFirstWrite) {
  const Output x = ops::placeholder(root_, kFloat, Shape::unknown_rank(), "x");
  const Operation good = ops::assign_add(root_, variables_[0], x).op();
  const Operation bad = ops::assign(root_, variables_[1], x).op();
  const Tensor wrong_for_one = Tensor::of<float>({1});
  EXPECT_THROW(session_->run({good, bad}, {{x, wrong_for_one}}), InvalidArgumentError);
  EXPECT_EQ(extremes(snapshot()).second, 0);
}

TEST_F(SnapshotTest, AWrongWriteAfterAnotherLeavesAStepThatIsNeverGiven) {
  const Output x = ops::placeholder(root_, kFloat, Shape::unknown_rank(), "x");
  const Operation first = ops::assign_add(root_, variables_[0], variables_[0]).op();
  const Output late = ops::aten(root_.with_control_dependencies({first}), "aten::neg", "late", {{"self", x}}).output();
  const Operation second = ops::assign(root_, variables_[1], late).op();
  EXPECT_THROW(session_->run({first, second}, {{x, Tensor::of<float>({1})}}), InvalidArgumentError);
  EXPECT_THROW(snapshot(), FailedPreconditionError);
}

TEST_F(SnapshotTest, MustNotWrite) {
  EXPECT_THROW(session_->run(train_, {}, {.snapshot = true}), InvalidArgumentError);
}

TEST(StepGate, ASnapshotShutsTheDoorAndTheLastOneOutTakesIt) {
  StepGate gate;
  gate.enter();
  gate.enter();
  std::atomic<bool> taken{false}, late_entered{false};
  std::thread asker([&] { gate.snapshot([&] { taken = true; }); });
  while (!gate.is_shut()) std::this_thread::yield();
  std::thread late([&] {
    gate.enter();
    EXPECT_TRUE(taken.load()) << "a step went in before the snapshot";
    late_entered = true;
    gate.leave();
  });
  gate.leave();
  EXPECT_FALSE(taken.load()) << "a step was still inside";
  gate.leave();
  EXPECT_TRUE(taken.load()) << "the last one out takes it";
  asker.join();
  late.join();
  EXPECT_TRUE(late_entered.load());
}

TEST(StepGate, AStepThatTakesLongIsWaitedForAndTheLogSaysSo) {
  StepGate gate;
  const LogRecorder log;
  gate.enter();
  std::atomic<bool> taken{false};
  std::thread asker([&] { gate.snapshot([&] { taken = true; }, StepGate::kLongestStep, Seconds{0.001}); });
  while (log.text(LogLevel::kWarning).find("a snapshot has waited") == std::string::npos) std::this_thread::yield();
  EXPECT_FALSE(taken.load());
  gate.leave();
  asker.join();
  EXPECT_TRUE(taken.load());
}

TEST(StepGate, ASnapshotDoesNotWaitForEver) {
  StepGate gate;
  gate.enter();
  EXPECT_THROW(gate.snapshot([] {}, Seconds{0.001}), DeadlineExceededError);
  gate.leave();
  gate.enter();
  gate.leave();
}

// What a summary service wants from the next training step.
class StepFetchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    x_ = ops::placeholder(root_, kFloat, {}, "x");
    other_ = ops::placeholder(root_, kFloat, {}, "other");
    v_ = ops::variable(root_, "v", Tensor::scalar(10.f));
    loss_ = ops::aten(root_, "aten::mul.Tensor", "loss", {{"self", x_}, {"other", v_}}).output();
    train_ = ops::assign_add(root_, v_, x_).op();
    train_other_ = ops::assign_add(root_, v_, other_).op();
    session_ = new_session("", graph_);
    session_->run(v_.initializer());
  }

  void ask() {
    session_->capabilities().step_fetching->request_step_fetch(
        {{loss_, v_}, [this](std::vector<Tensor> values, std::exception_ptr error) {
           ++calls_;
           values_ = std::move(values);
           error_ = error;
         }});
  }

  Graph graph_;
  Scope root_{graph_};
  Output x_, other_, loss_;
  Variable v_;
  Operation train_, train_other_;
  std::unique_ptr<Session> session_;
  int calls_ = 0;
  std::vector<Tensor> values_;
  std::exception_ptr error_;
};

TEST_F(StepFetchTest, IsComputedAlongWithTheNextStepAndOnce) {
  ask();
  EXPECT_TRUE(session_->run({Fetch(train_), Fetch(loss_)}, {{x_, Tensor::scalar(2.f)}}).size() == 2);
  ASSERT_EQ(calls_, 1);
  EXPECT_EQ(values_[0].item<float>(), 20);
  EXPECT_EQ(values_[1].item<float>(), 10) << "the weights that the loss was computed with";
  session_->run(train_, {{x_, Tensor::scalar(2.f)}});
  EXPECT_EQ(calls_, 1);
}

TEST_F(StepFetchTest, WaitsForAStepThatFeedsWhatItNeeds) {
  ask();
  session_->run(loss_, {{x_, Tensor::scalar(2.f)}});
  session_->run(train_other_, {{other_, Tensor::scalar(2.f)}});
  EXPECT_EQ(calls_, 0);
  session_->make_callable(train_, {x_})(Tensor::scalar(3.f));
  ASSERT_EQ(calls_, 1);
  EXPECT_EQ(values_[0].item<float>(), 36);
}

TEST_F(StepFetchTest, IsToldOfTheStepsError) {
  const Output failing = ops::host_function(root_, {x_}, {kFloat}, [](const auto&) -> std::vector<Tensor> {
                           throw AbortedError("no");
                         }).output();
  const Operation train = ops::assign_add(root_, v_, failing).op();
  ask();
  EXPECT_THROW(session_->run(train, {{x_, Tensor::scalar(2.f)}}), AbortedError);
  ASSERT_EQ(calls_, 1);
  EXPECT_EQ(code_of(error_), Code::kAborted);
}

TEST_F(StepFetchTest, CanBeTakenBack) {
  ask();
  session_->capabilities().step_fetching->withdraw_step_fetch(nullptr);
  session_->run(train_, {{x_, Tensor::scalar(2.f)}});
  ask();
  session_->close();
  EXPECT_EQ(calls_, 0);
}

TEST_F(StepFetchTest, EachRequesterHasItsOwn) {
  StepFetching& fetching = *session_->capabilities().step_fetching;
  int requesters[2] = {};  // in their order
  const void *const first = &requesters[0], *const second = &requesters[1];
  std::vector<std::string> got;
  const auto request = [&](std::vector<Output> fetches, const void* requester, std::string name) {
    fetching.request_step_fetch({std::move(fetches),
                                 [&got, name](const std::vector<Tensor>& values, const std::exception_ptr& error) {
                                   for (const Tensor& value : values)
                                     got.push_back(name + " " + std::to_string(value.item<float>()).substr(0, 4));
                                   if (error) got.push_back(name + " error");
                                 },
                                 requester});
  };
  request({v_}, first, "old");
  request({v_, loss_}, first, "first");
  request({loss_}, second, "second");
  session_->run(train_other_, {{other_, Tensor::scalar(2.f)}});
  EXPECT_THAT(got, ElementsAre()) << "the loss needs x";
  request({v_}, second, "second");
  session_->run(train_other_, {{other_, Tensor::scalar(2.f)}});
  EXPECT_THAT(got, ElementsAre("second 12.0")) << "one waits, and the other is served";
  got.clear();
  request({v_}, second, "second");
  session_->run(train_, {{x_, Tensor::scalar(2.f)}});
  EXPECT_THAT(got, ElementsAre("first 14.0", "first 28.0", "second 14.0"));
  got.clear();
  request({v_}, first, "first");
  request({v_}, second, "second");
  fetching.withdraw_step_fetch(first);
  session_->run(train_, {{x_, Tensor::scalar(2.f)}});
  EXPECT_THAT(got, ElementsAre("second 16.0"));
}

TEST_F(StepFetchTest, AllAreToldOfTheStepsError) {
  const Output failing = ops::host_function(root_, {x_}, {kFloat}, [](const auto&) -> std::vector<Tensor> {
                           throw AbortedError("no");
                         }).output();
  const Operation train = ops::assign_add(root_, v_, failing).op();
  int told = 0, other = 0;
  for (const void* requester : {static_cast<const void*>(&told), static_cast<const void*>(&other)}) {
    session_->capabilities().step_fetching->request_step_fetch(
        {{v_},
         [&](const std::vector<Tensor>& values, const std::exception_ptr& error) {
           told += values.empty() && code_of(error) == Code::kAborted ? 1 : 0;
         },
         requester});
  }
  EXPECT_THROW(session_->run(train, {{x_, Tensor::scalar(2.f)}}), AbortedError);
  EXPECT_EQ(told, 2);
}

TEST_F(StepFetchTest, OnlyWhatNeedsNoInputCanRunAlone) {
  EXPECT_FALSE(is_side_effect_free({loss_}));
  EXPECT_TRUE(is_side_effect_free({v_}));
  const Output noise = ops::aten(root_, "aten::rand.generator", "noise", {{"size", std::vector<int64_t>{2}}}).output();
  EXPECT_FALSE(is_side_effect_free({v_, noise}));
}

TEST(Random, EachOperationHasItsOwnStreamFromTheGraphsSeed) {
  Graph graph;
  graph.set_seed(7);
  const Scope root(graph);
  const auto noise = [&] {
    return ops::aten(root, "aten::rand.generator", "noise", {{"size", std::vector<int64_t>{2}}}).output();
  };
  const Output a = noise(), b = noise();
  auto one = new_session("", graph), two = new_session("", graph);
  const Tensor first = one->run(a);
  EXPECT_FALSE(identical(first, one->run(b)));
  EXPECT_FALSE(identical(first, one->run(a)));
  EXPECT_TRUE(identical(first, two->run(a)));
}

}  // namespace
}  // namespace longhaul
