#include "longhaul/host/accumulators/accumulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/base/log.h"
#include "longhaul/host/accumulators/worker_gradients.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AccumulatorTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Accumulator> scalars(GradientReduction reduction = GradientReduction::kMean) {
    const GradientSpec spec{.dtype = kFloat, .shape = {}, .reduction = reduction};
    return std::make_unique<Accumulator>("v:0/grad_accum", spec, make_dense_sum(spec));
  }
  bool apply(int64_t local_step, float gradient) {
    const std::vector<Tensor> tensors{Tensor::scalar(gradient)};
    return accumulator_->apply(local_step, tensors).counted;
  }
  float take(int32_t num_required, const WaitLimits& limits = {}) {
    return accumulator_->take(num_required, limits)[0].item<float>();
  }
  std::future<float> take_in_background(int32_t num_required, const WaitLimits& limits = {}) {
    return std::async(std::launch::async, [this, num_required, limits] { return take(num_required, limits); });
  }
  void wait_until_waiting(size_t takes) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (accumulator_->waiting() != takes && Clock::real().now() < deadline) std::this_thread::yield();
    ASSERT_EQ(accumulator_->waiting(), takes);
  }

  const std::unique_ptr<Accumulator> accumulator_ = scalars();
};

TEST_F(AccumulatorTest, DividesByTheGradientsThatThereAre) {  // SY-7
  for (const float gradient : {1.f, 2.f, 6.f}) apply(0, gradient);
  EXPECT_EQ(accumulator_->num_accumulated(), 3);
  EXPECT_EQ(take(1), 3);
  EXPECT_EQ(accumulator_->num_accumulated(), 0);
  EXPECT_EQ(accumulator_->step(), 1);
}

TEST_F(AccumulatorTest, DropsGradientsOfStepsThatAreOver) {  // SY-7
  EXPECT_TRUE(apply(0, 1));
  take(1);
  EXPECT_FALSE(apply(0, 100));
  EXPECT_TRUE(apply(1, 3));
  EXPECT_TRUE(apply(7, 5));  // before anything was undone, a later step is as good
  EXPECT_EQ(take(2), 4);
  EXPECT_EQ(accumulator_->num_dropped(), 1);
}

TEST_F(AccumulatorTest, CountsWhatIsOfTheStepThatWasSetOrLater) {  // SY-7
  for (int64_t set = 1000; set < 1005; ++set) {
    accumulator_->set_global_step(set);
    float sum = 0, count = 0;
    for (int64_t step = 1000; step < 1005; ++step) {
      const bool counted = apply(step, static_cast<float>(step));
      EXPECT_EQ(counted, step >= set);
      sum += counted ? static_cast<float>(step) : 0;
      count += counted ? 1 : 0;
    }
    EXPECT_EQ(take(1), sum / count);
  }
}

TEST_F(AccumulatorTest, AStepThatIsSetHigherKeepsTheGradients) {
  apply(0, 2);
  accumulator_->set_global_step(10);
  apply(10, 4);
  EXPECT_EQ(take(2), 3);
  EXPECT_EQ(accumulator_->step(), 11);
}

TEST_F(AccumulatorTest, AModelThatWasSetBackGetsNoGradientsOfUndoneSteps) {  // unlike SY-7
  std::vector<std::string> log;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) { log.push_back(line); });
  accumulator_->set_global_step(18);
  apply(18, 100);
  accumulator_->set_global_step(0);
  set_log_sink(before);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("Attempt to set current_global_step_ to smaller value: current_global_step_ = 18 >= 0 "
                                "= new_global_step"));
  EXPECT_EQ(accumulator_->num_accumulated(), 0);
  EXPECT_FALSE(apply(18, 100));
  EXPECT_FALSE(apply(1, 100));
  EXPECT_TRUE(apply(0, 1));
  EXPECT_TRUE(apply(19, 3));  // was never undone
  EXPECT_EQ(take(2), 2);
  EXPECT_EQ(accumulator_->num_dropped(), 3);
}

TEST_F(AccumulatorTest, ATakeWaitsForEnoughGradients) {  // SY-7
  auto taken = take_in_background(3);
  wait_until_waiting(1);
  for (const float gradient : {10.f, 20.f, 30.f}) apply(0, gradient);
  EXPECT_EQ(taken.get(), 20);
}

TEST_F(AccumulatorTest, TakesAreServedInTheOrderInWhichTheyCame) {
  auto first = take_in_background(2);
  wait_until_waiting(1);
  auto second = take_in_background(1);
  wait_until_waiting(2);
  apply(0, 1);
  EXPECT_EQ(accumulator_->waiting(), 2u);
  apply(0, 3);
  EXPECT_EQ(first.get(), 2);
  apply(1, 9);
  EXPECT_EQ(second.get(), 9);
}

TEST_F(AccumulatorTest, ATakeThatGivesUpLeavesItsPlaceToTheNext) {
  Cancellation cancellation;
  auto large = take_in_background(5, {.deadline = Seconds{0}, .cancellation = &cancellation});
  wait_until_waiting(1);
  auto small = take_in_background(1);
  wait_until_waiting(2);
  apply(0, 4);
  cancellation.cancel("Session::Close");
  EXPECT_EQ(coded_error_of([&] { large.get(); }), "CANCELLED: Session::Close");
  EXPECT_EQ(small.get(), 4);
}

TEST_F(AccumulatorTest, AWaitEndsWithItsRun) {
  EXPECT_EQ(coded_error_of([&] { take(1, {.deadline = Clock::real().now()}); }),
            "DEADLINE_EXCEEDED: 'v:0/grad_accum': the run timed out while it waited for gradients");
  EXPECT_EQ(accumulator_->waiting(), 0u);
}

TEST_F(AccumulatorTest, TakesAreCancelledUntilTheStepIsSet) {
  auto taken = take_in_background(1);
  wait_until_waiting(1);
  accumulator_->cancel_takes();
  EXPECT_EQ(coded_error_of([&] { taken.get(); }), "CANCELLED: 'v:0/grad_accum': TakeGrad operation was cancelled");
  apply(0, 1);
  EXPECT_THROW(take(1), CancelledError);
  accumulator_->set_global_step(0);
  EXPECT_EQ(take(1), 1);
}

TEST_F(AccumulatorTest, AStepThatIsSetAtOnceDoesNotSaveACancelledTake) {
  auto taken = take_in_background(1);
  wait_until_waiting(1);
  accumulator_->cancel_takes();
  accumulator_->set_global_step(0);
  EXPECT_THROW(taken.get(), CancelledError);
}

TEST_F(AccumulatorTest, SaysWhatDoesNotFit) {
  EXPECT_EQ(refusal_of([&] { take(0); }), "Argument num_required must be positive, but was 0");
  EXPECT_EQ(refusal_of([&] { take(-1); }), "Argument num_required must be positive, but was -1");
  const std::vector<Tensor> vector{Tensor::of<float>({1, 2})};
  EXPECT_EQ(refusal_of([&] { accumulator_->apply(0, vector); }), "Shape mismatch: expected [], got [2]");
  const std::vector<Tensor> integer{Tensor::scalar<int32_t>(1)};
  EXPECT_THAT(refusal_of([&] { accumulator_->apply(0, integer); }), HasSubstr("int32"));
  EXPECT_EQ(accumulator_->num_accumulated(), 0);
}

TEST_F(AccumulatorTest, GradientsOfManyThreadsAreAllCounted) {
  std::vector<std::thread> threads;
  for (int i = 1; i <= 10; ++i) threads.emplace_back([this, i] { apply(0, 10 * static_cast<float>(i)); });
  EXPECT_EQ(take(10), 55);
  for (std::thread& thread : threads) thread.join();
}

// Takes that wait in vain, on a clock that passes time.
class AccumulatorWaitTest : public AccumulatorTest {
 protected:
  void apply_of(const std::string& worker, float gradient) {
    const std::vector<Tensor> tensors{Tensor::scalar(gradient)};
    accumulator_->apply(accumulator_->step(), tensors, worker, clock_);
  }
  float take_with(int32_t num_required, TakeWait wait, Cancellation* cancellation = nullptr) {
    wait.clock = &clock_;
    return accumulator_->take(num_required, {.cancellation = cancellation}, wait)[0].item<float>();
  }
  // The warnings meanwhile; after so many the take is cancelled.
  std::vector<std::string> warnings_of_take(int32_t num_required, TakeWait wait, size_t most) {
    std::vector<std::string> lines;
    Cancellation enough;
    const LogSink before = set_log_sink([&](LogLevel level, const std::string& line) {
      if (level == LogLevel::kWarning) lines.push_back(line);
      if (lines.size() == most) enough.cancel("the test has seen enough");
    });
    EXPECT_THROW(take_with(num_required, wait, &enough), CancelledError);
    set_log_sink(before);
    return lines;
  }

  testing::FakeClock clock_{testing::FakeClock::Waits::kPassTime};
};

TEST_F(AccumulatorWaitTest, FewerWillDoOnceTheyHaveWaited) {  // unlike SY-10
  apply_of("worker0", 4);
  const Seconds began = clock_.now();
  EXPECT_EQ(take_with(2, {.min_required = 1, .wait_secs = Seconds{10}}), 4);
  EXPECT_EQ((clock_.now() - began).count(), 10);
  EXPECT_EQ(accumulator_->num_reduced(), 1);
  EXPECT_EQ(accumulator_->step(), 1);
  apply_of("worker0", 1);
  apply_of("worker1", 3);
  EXPECT_EQ(take_with(2, {.min_required = 1, .wait_secs = Seconds{10}}), 2);
  EXPECT_EQ(accumulator_->num_reduced(), 1);
}

TEST_F(AccumulatorWaitTest, FewerThanTheLeastWillNotDo) {
  apply_of("worker0", 4);
  auto taken =
      std::async(std::launch::async, [this] { return take_with(3, {.min_required = 2, .wait_secs = Seconds{10}}); });
  const Seconds end = clock_.now() + Seconds{50};
  const Seconds deadline = Clock::real().now() + Seconds{20};
  while (clock_.now() < end && Clock::real().now() < deadline) std::this_thread::yield();
  EXPECT_EQ(accumulator_->waiting(), 1u);
  const Seconds enough = clock_.now();  // or later
  apply_of("worker1", 6);
  EXPECT_EQ(taken.get(), 5);
  EXPECT_GE(clock_.now() - enough, Seconds{10});
}

TEST_F(AccumulatorWaitTest, AStepThatLacksGradientsIsInTheLogAgainAndAgain) {
  apply_of("worker0", 4);
  const std::vector<std::string> lines = warnings_of_take(3, {.warn_secs = Seconds{60}}, 3);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr("'v:0/grad_accum': step 0 has 1 of 3 gradients (of worker0) after 60 s, and waits"));
  EXPECT_THAT(lines[1], HasSubstr("after 120 s"));
  EXPECT_THAT(lines[2], HasSubstr("after 240 s"));
  EXPECT_EQ(accumulator_->num_accumulated(), 1);
  EXPECT_EQ(accumulator_->waiting(), 0u);
}

TEST_F(AccumulatorWaitTest, AStepThatGoesOnWithFewerIsInTheLog) {
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  apply_of("worker0", 4);
  take_with(2, {.min_required = 1, .wait_secs = Seconds{10}, .warn_secs = Seconds{60}});
  set_log_sink(before);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("'v:0/grad_accum': step 0 continues with 1 of 2 gradients (of worker0), which have "
                                  "waited 10 s"));
}

// The lines that are logged while gradients of one worker come.
std::vector<std::string> lines_of(const std::vector<bool>& counted) {
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  WorkerGradients workers;
  for (const bool is_counted : counted) workers.add("/job:worker/task:1", 3, {is_counted, 5});
  set_log_sink(before);
  return lines;
}

TEST(WorkerGradients, TheOneThatEachWorkerLosesAfterAStartIsNotReported) {
  EXPECT_THAT(lines_of({true, false, true, true}), ElementsAre());
}

TEST(WorkerGradients, AWorkerThatIsAlwaysLateIsNamedMoreAndMoreRarely) {
  const std::vector<std::string> lines = lines_of(std::vector<bool>(100, false));
  ASSERT_EQ(lines.size(), 6u);  // at 2, 4, 8, 16, 32, 64
  EXPECT_THAT(lines[0], HasSubstr("/job:worker/task:1: 2 of its 2 gradients were dropped"));
  EXPECT_THAT(lines[5], HasSubstr("64 of its 64 gradients were dropped, because their step was over: the last one was "
                                  "computed in step 3, when step 5 had begun"));
}

TEST(WorkerGradients, EachWorkerIsCounted) {
  WorkerGradients workers;
  workers.add("a", 0, {true, 0});
  workers.add("a", 0, {false, 1});
  EXPECT_EQ(workers.of("a").counted, 1);
  EXPECT_EQ(workers.of("a").dropped, 1);
  EXPECT_EQ(workers.of("b").dropped, 0);
}

TEST_F(AccumulatorTest, AResetOfItsContainerEndsTakesAndGradients) {
  std::future<float> taken = take_in_background(1);
  wait_until_waiting(1);
  accumulator_->drop("its container was reset");
  EXPECT_THAT(error_of<AbortedError>([&] { taken.get(); }), HasSubstr("v:0/grad_accum': its container was reset"));
  EXPECT_THROW(take(1), AbortedError);
  EXPECT_THROW(apply(0, 1), AbortedError);
}

}  // namespace
}  // namespace longhaul
