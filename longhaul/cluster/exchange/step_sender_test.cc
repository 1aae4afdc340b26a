#include "longhaul/cluster/exchange/step_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/exchange/step_exchange.h"
#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSentStep = 7;

class StepSenderTest : public ::testing::Test {
 protected:
  StepSenderTest() { serve_deliver(*ps_, exchange_); }

  std::vector<Tensor> values(float first) { return {Tensor::of<float>({first, 2, 3})}; }
  StepSender::Peer peer() { return {kPs, ps_->incarnation()}; }
  WaitLimits limits(Seconds time = Seconds{60}) { return {.deadline = now() + time}; }
  Seconds now() { return network_.clock().now(); }
  void in(Seconds time, std::function<void()> event) { network_.clock().at(now() + time, std::move(event)); }
  float received(int32_t bundle) { return exchange_->receive({kSentStep, bundle, kWorker}, {}).at(0).flat<float>()[0]; }
  void expect_nothing_left() {
    network_.clock().settle();
    EXPECT_EQ(worker_->open_calls(), Transport::Open{});
    EXPECT_EQ(ps_->open_calls(), Transport::Open{});
  }

  SimulatedNetwork network_;
  std::shared_ptr<Transport> ps_ = network_.start(kPs);
  std::shared_ptr<Transport> worker_ = network_.start(kWorker);
  std::shared_ptr<StepExchange> exchange_ =
      std::make_shared<StepExchange>(network_.clock(), ExchangeOptions{.max_buffered = 100});
};

TEST_F(StepSenderTest, BundlesArriveOnce) {
  StepSender sender(*worker_, kSentStep, limits());
  sender.send(peer(), 0, values(5));
  sender.send(peer(), 1, values(6));
  sender.finish();
  EXPECT_EQ(received(0), 5);
  EXPECT_EQ(received(1), 6);
  EXPECT_EQ(exchange_->counts().delivered, 2u);
  EXPECT_EQ(network_.calls(kWorker, kPs), 2u);
  expect_nothing_left();
}

TEST_F(StepSenderTest, ALostReplyIsFollowedByARepetitionThatCountsOnce) {  // unlike RZ-7, unlike RZ-9
  network_.plan({.kind = NetworkFault::Kind::kLoseReply, .message = 1});
  StepSender sender(*worker_, kSentStep, limits());
  sender.send(peer(), 0, values(5));
  sender.finish();
  EXPECT_EQ(received(0), 5);
  EXPECT_EQ(exchange_->counts().delivered, 1u);
  EXPECT_EQ(exchange_->counts().repeated, 1u);
  expect_nothing_left();
}

TEST_F(StepSenderTest, ARestartedPeerIsNotSentTheSameAgain) {
  const StepSender::Peer before = peer();
  network_.plan({.kind = NetworkFault::Kind::kKillReceiverBefore, .message = 1, .time = Seconds{1}});
  std::shared_ptr<Transport> restarted;
  network_.on_restart([&](const std::string& task) {
    restarted = network_.start(task);
    serve_deliver(*restarted, exchange_);
  });
  StepSender sender(*worker_, kSentStep, limits());
  sender.send(before, 0, values(5));
  EXPECT_THAT(error_of<AbortedError>([&] { sender.finish(); }),
              AllOf(HasSubstr("expects a different device incarnation"), HasSubstr(kPs)));
  EXPECT_EQ(exchange_->counts().delivered, 0u);
  EXPECT_THROW(sender.send(before, 1, values(6)), AbortedError);
  expect_nothing_left();
}

TEST_F(StepSenderTest, APeerThatIsNotReachedIsNamed) {
  network_.cut(kWorker, kPs);
  std::string told;
  StepSender sender(*worker_, kSentStep, limits(),
                    {.failed = [&](std::exception_ptr error) { told = message_of(error); }});
  const Seconds began = now();
  sender.send(peer(), 0, values(5));
  EXPECT_THAT(error_of<UnavailableError>([&] { sender.finish(); }),
              AllOf(HasSubstr("task " + kPs + " (10.0.0.1:2222) has not answered Deliver for"), HasSubstr(" s")));
  EXPECT_GE((now() - began).count(), 10);
  EXPECT_LE((now() - began).count(), 14);
  EXPECT_THAT(told, HasSubstr("has not answered"));
  expect_nothing_left();
}

TEST_F(StepSenderTest, TheStepsDeadlineIsHeld) {
  network_.cut(kWorker, kPs);
  const Seconds began = now();
  StepSender sender(*worker_, kSentStep, limits(Seconds{2}));
  sender.send(peer(), 0, values(5));
  EXPECT_THAT(error_of<DeadlineExceededError>([&] { sender.finish(); }), HasSubstr("task " + kPs));
  EXPECT_NEAR((now() - began).count(), 2, 0.01);
  expect_nothing_left();
}

TEST_F(StepSenderTest, AFullReceiverStopsTheSender) {
  StepSender sender(*worker_, kSentStep, limits(), {.max_unanswered = 20});
  for (int32_t bundle = 0; bundle < 10; ++bundle) sender.send(peer(), bundle, values(1));  // 12 bytes each
  network_.clock().settle();
  EXPECT_EQ(exchange_->counts().unanswered, 2u);  // 8 fit into its 100 bytes
  const Seconds began = now();
  in(Seconds{1}, [&] {
    for (int32_t bundle = 0; bundle < 9; ++bundle) received(bundle);
  });
  sender.send(peer(), 10, values(1));
  EXPECT_NEAR((now() - began).count(), 1, 0.01);
  received(9);
  received(10);
  sender.finish();
  EXPECT_EQ(exchange_->counts().delivered, 11u);
  expect_nothing_left();
}

TEST_F(StepSenderTest, ACancelEndsIt) {
  Cancellation cancellation;
  WaitLimits cancelled = limits();
  cancelled.cancellation = &cancellation;
  network_.cut(kWorker, kPs);
  in(Seconds{1}, [&] { cancellation.cancel("the session is closed"); });
  StepSender sender(*worker_, kSentStep, cancelled);
  sender.send(peer(), 0, values(5));
  EXPECT_THROW(sender.finish(), CancelledError);
  expect_nothing_left();
}

TEST_F(StepSenderTest, ItsEndGivesUpWhatIsUnderWay) {
  network_.cut(kWorker, kPs);
  {
    StepSender sender(*worker_, kSentStep, limits());
    sender.send(peer(), 0, values(5));
  }
  EXPECT_EQ(worker_->open_calls(), Transport::Open{});
  EXPECT_FALSE(network_.clock().run_until([] { return false; }, Seconds{20}));
  EXPECT_EQ(network_.waiting(), 0u);
  expect_nothing_left();
}

TEST_F(StepSenderTest, AStepThatIsOverThereIsNoError) {
  exchange_->end(kSentStep);
  StepSender sender(*worker_, kSentStep, limits());
  sender.send(peer(), 0, values(5));
  sender.finish();
  EXPECT_EQ(exchange_->counts().dropped, 1u);
}

}  // namespace
}  // namespace longhaul
