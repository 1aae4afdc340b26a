#include "longhaul/cluster/transport/call_group.h"

#include <gmock/gmock.h>

#include "longhaul/cluster/simulation/simulated_clock.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// On whose lines each call breaks at once.
class BreakingTransport : public Transport {
 public:
  explicit BreakingTransport(SimulatedClock& clock) : Transport(kWorker, 1, clock), simulated_(clock) {}

  std::string address_of(const std::string&) const override { return ""; }
  const std::vector<Seconds>& sent() const { return sent_; }
  std::vector<Seconds> gaps() const {
    std::vector<Seconds> gaps;
    for (size_t i = 1; i < sent_.size(); ++i) gaps.push_back(sent_[i] - sent_[i - 1]);
    return gaps;
  }

 protected:
  void send(std::shared_ptr<OutgoingCall> call, proto::CallHeader, Message) override {
    constexpr size_t kStorm = 1000;
    sent_.push_back(simulated_.now());
    if (sent_.size() < kStorm) {
      call->break_off(simulated_.now());
    } else {
      call->end(CallReply{.error = std::make_exception_ptr(InternalError("a storm"))});
    }
  }
  void wake_after(Seconds time, std::function<void()> wake) override {
    simulated_.at(simulated_.now() + time, std::move(wake));
  }

 private:
  SimulatedClock& simulated_;
  std::vector<Seconds> sent_;
};

class CallGroupTest : public ::testing::Test {
 protected:
  static CallRequest request() { return {.task = kPs, .method = "Ask"}; }
  Seconds now() const { return clock_.now(); }
  std::optional<CallGroup::Ended> next(CallGroup& calls) { return calls.next({.deadline = now() + Seconds{60}}); }

  SimulatedClock clock_;
  BreakingTransport transport_{clock_};
};

TEST_F(CallGroupTest, ABrokenCallIsRepeatedWithGrowingPauses) {
  CallGroup calls(transport_, Seconds{10});
  const Seconds began = now();
  calls.start(request());
  const auto ended = next(calls);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->reply.is_broken);
  EXPECT_LE((now() - began).count(), 10);
  EXPECT_GT((now() - began).count(), 8.9);
  const std::vector<Seconds> gaps = transport_.gaps();
  ASSERT_GT(gaps.size(), 10u);
  EXPECT_LT(gaps.size(), 20u);
  EXPECT_NEAR(gaps.front().count(), 0.01, 1e-6);
  for (size_t i = 1; i < gaps.size(); ++i) EXPECT_GE(gaps[i].count(), gaps[i - 1].count() - 1e-6) << i;
  EXPECT_NEAR(gaps.back().count(), 1, 1e-6);
}

TEST_F(CallGroupTest, ADeadlineEndsThePause) {
  CallGroup calls(transport_);
  const Seconds began = now();
  calls.start(request(), began + Seconds{4.5});  // between two attempts
  const auto ended = next(calls);
  ASSERT_TRUE(ended);
  EXPECT_EQ(code_of(ended->reply.error), Code::kDeadlineExceeded);
  EXPECT_NEAR((now() - began).count(), 4.5, 1e-6);
}

TEST_F(CallGroupTest, AStopOfTheTransportEndsThePause) {
  CallGroup calls(transport_);
  const Seconds began = now();
  calls.start(request());
  clock_.at(began + Seconds{4.5}, [&] { transport_.stop("the program ends"); });
  const auto ended = next(calls);
  ASSERT_TRUE(ended);
  EXPECT_EQ(code_of(ended->reply.error), Code::kUnavailable);
  EXPECT_FALSE(ended->reply.is_broken);
  EXPECT_THAT(message_of(ended->reply.error), HasSubstr("the program ends"));
  EXPECT_NEAR((now() - began).count(), 4.5, 1e-6);
}

TEST_F(CallGroupTest, WhatIsGivenUpInAPauseIsNotSentAgain) {
  {
    CallGroup calls(transport_);
    calls.start(request());
    EXPECT_FALSE(calls.next({.deadline = now() + Seconds{4.5}}));
    EXPECT_EQ(transport_.open_calls().outgoing, 1u);
  }
  EXPECT_EQ(transport_.open_calls().outgoing, 0u);
  const size_t sent = transport_.sent().size();
  clock_.run_until([] { return false; }, Seconds{5});
  EXPECT_EQ(transport_.sent().size(), sent);
}

TEST_F(CallGroupTest, ACancelEndsTheWaitInAPause) {
  CallGroup calls(transport_);
  Cancellation cancellation;
  const Seconds began = now();
  calls.start(request());
  clock_.at(began + Seconds{4.5}, [&] { cancellation.cancel("the session was closed"); });
  EXPECT_FALSE(calls.next({.deadline = began + Seconds{60}, .cancellation = &cancellation}));
  EXPECT_NEAR((now() - began).count(), 4.5, 1e-6);
}

}  // namespace
}  // namespace longhaul
