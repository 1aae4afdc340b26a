#include "longhaul/cluster/simulation/simulated_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using Kind = NetworkFault::Kind;

class SimulatedNetworkTest : public ::testing::Test {
 protected:
  SimulatedNetworkTest() {
    serve(*ps_);
    network_.on_killed([this](const std::string& task) { killed_.push_back(task); });
    network_.on_restart([this](const std::string& task) {
      restarted_ = network_.start(task);
      serve(*restarted_);
    });
  }

  void serve(Transport& transport) {
    transport.serve("Note", [this](std::shared_ptr<IncomingCall> call) {
      handled_.push_back(call->request().header);
      call->reply({});
    });
  }
  // Notes how the call ends: its header, or the code of its error.
  void call(const std::string& header) {
    worker_->start({.task = kPs, .method = "Note", .message = {header, {}}}, [this, header](CallReply reply) {
      ended_.push_back(reply.error == nullptr ? header : header + " " + code_name(code_of(reply.error)));
    });
  }
  void call_twice_with(Kind kind, uint64_t message) {
    network_.plan({.kind = kind, .message = message, .time = Seconds{1}});
    call("a");
    call("b");
    network_.clock().run_until([] { return false; }, Seconds{20});
  }

  SimulatedNetwork network_;
  std::shared_ptr<Transport> ps_ = network_.start(kPs);
  std::shared_ptr<Transport> worker_ = network_.start(kWorker);
  std::shared_ptr<Transport> restarted_;
  std::vector<std::string> handled_, ended_, killed_;
};

using ::testing::ElementsAre;

TEST_F(SimulatedNetworkTest, MessagesArriveInOrderAndInNoTime) {
  call("a");
  call("b");
  const Seconds began = network_.clock().now();
  network_.clock().settle();
  EXPECT_EQ(network_.clock().now(), began);
  EXPECT_THAT(handled_, ElementsAre("a", "b"));
  EXPECT_THAT(ended_, ElementsAre("a", "b"));
  ASSERT_EQ(network_.sent().size(), 4u);
  EXPECT_EQ(network_.sent()[0].method, "Note");
  EXPECT_FALSE(network_.sent()[0].is_reply);
  EXPECT_EQ(network_.sent()[2].from, kPs);
  EXPECT_TRUE(network_.sent()[2].is_reply);
}

TEST_F(SimulatedNetworkTest, ALostCallIsNotHandled) {
  call_twice_with(Kind::kLose, 1);
  EXPECT_THAT(handled_, ElementsAre("b"));
  EXPECT_THAT(ended_, ElementsAre("b", "a UNAVAILABLE"));
}

TEST_F(SimulatedNetworkTest, ACallWhoseReplyIsLostIsHandled) {
  call_twice_with(Kind::kLoseReply, 1);
  EXPECT_THAT(handled_, ElementsAre("a", "b"));
  EXPECT_THAT(ended_, ElementsAre("b", "a UNAVAILABLE"));
}

TEST_F(SimulatedNetworkTest, ADoubledCallIsHandledTwiceAndEndsOnce) {
  call_twice_with(Kind::kDouble, 1);
  EXPECT_THAT(handled_, ElementsAre("a", "a", "b"));
  EXPECT_THAT(ended_, ElementsAre("a", "b"));
}

TEST_F(SimulatedNetworkTest, ADelayedCallComesBehindTheNext) {
  call_twice_with(Kind::kDelay, 1);
  EXPECT_THAT(handled_, ElementsAre("b", "a"));
  EXPECT_THAT(ended_, ElementsAre("b", "a"));
}

TEST_F(SimulatedNetworkTest, AShortCutHoldsMessages) {
  for (const Kind kind : {Kind::kCut, Kind::kCutOneWay}) {
    handled_.clear();
    ended_.clear();
    call_twice_with(kind, network_.sent().size() + 1);
    EXPECT_THAT(handled_, ElementsAre("a", "b"));
    EXPECT_THAT(ended_, ElementsAre("a", "b"));
  }
}

TEST_F(SimulatedNetworkTest, ASenderThatDiesBeforeSendsNothing) {
  call_twice_with(Kind::kKillSenderBefore, 1);
  EXPECT_TRUE(handled_.empty());
  EXPECT_THAT(ended_, ElementsAre("a UNAVAILABLE", "b UNAVAILABLE"));
  EXPECT_THAT(killed_, ElementsAre(kWorker));
  EXPECT_EQ(network_.sent().size(), 1u);
  EXPECT_TRUE(network_.is_alive(kWorker));  // again
  EXPECT_NE(restarted_->incarnation(), worker_->incarnation());
}

TEST_F(SimulatedNetworkTest, ASenderThatDiesAfterHasSent) {
  call_twice_with(Kind::kKillSenderAfter, 1);
  EXPECT_THAT(handled_, ElementsAre("a"));
}

TEST_F(SimulatedNetworkTest, AReceiverThatDiesBeforeHandlesNothing) {
  call_twice_with(Kind::kKillReceiverBefore, 1);
  EXPECT_THAT(killed_, ElementsAre(kPs));
  // They wait for the task, and no incarnation was asked for.
  EXPECT_THAT(handled_, ElementsAre("a", "b"));
  EXPECT_THAT(ended_, ElementsAre("a", "b"));
}

TEST_F(SimulatedNetworkTest, AReceiverThatDiesAfterHasHandledIt) {
  call_twice_with(Kind::kKillReceiverAfter, 1);
  EXPECT_THAT(handled_, ElementsAre("a", "b"));
  EXPECT_THAT(ended_, ElementsAre("a", "b"));
  EXPECT_THAT(killed_, ElementsAre(kPs));
}

TEST_F(SimulatedNetworkTest, AFaultIsDescribed) {
  EXPECT_EQ(to_string(NetworkFault{.kind = Kind::kKillReceiverBefore, .message = 3, .time = Seconds{1}}),
            "message 3: kill the receiver before, for 1 s");
}

TEST_F(SimulatedNetworkTest, ATaskIsStartedOnceAtATime) {
  EXPECT_NE(refusal_of([&] { network_.start(kPs); }).find("is alive: kill() it first"), std::string::npos);
}

TEST(SimulatedClock, WhatNeverHappensIsAnError) {
  SimulatedClock clock;
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  EXPECT_THROW(
      {
        while (true) clock.wait_for(never, mutex, Seconds{1e6});
      },
      InternalError);
}

TEST(SimulatedClockTest, TimeStandsStillWhileAJobIsAtWork) {
  SimulatedClock clock(SimulatedClock::Threads::kSeveral);
  const Seconds began = clock.now();
  std::atomic<bool> may_end = false, has_ended = false;
  std::thread worker(clock.around([&] {
    while (!may_end) std::this_thread::yield();
    has_ended = true;
  }));
  int looks = 0;
  EXPECT_TRUE(clock.run_until(
      [&] {
        if (++looks == 50) may_end = true;
        return has_ended.load();
      },
      Seconds{3600}));
  worker.join();
  EXPECT_LE((clock.now() - began).count(), 1) << "half a second may pass before the test's thread looks again";
}

// As the thread of a Supervisor that writes a checkpoint: the clock knows nothing of it.
TEST(SimulatedClockTest, TimeStandsStillWhileAnyThreadIsBusy) {
  SimulatedClock clock(SimulatedClock::Threads::kSeveral);
  const Seconds began = clock.now();
  std::atomic<bool> may_end = false;
  std::thread worker([&] {
    while (!may_end) std::this_thread::yield();
  });
  int looks = 0;
  EXPECT_TRUE(clock.run_until([&] { return ++looks > 200; }, Seconds{3600}));
  may_end = true;
  worker.join();
  EXPECT_LE((clock.now() - began).count(), 1);
}

TEST(SimulatedClockTest, AJobThatWaitsLetsTimePass) {
  SimulatedClock clock(SimulatedClock::Threads::kSeveral);
  std::atomic<bool> has_ended = false;
  std::thread worker(clock.around([&] {
    clock.run_until([] { return false; }, Seconds{5});
    has_ended = true;
  }));
  EXPECT_TRUE(clock.run_until([&] { return has_ended.load(); }, Seconds{20}));
  worker.join();
}

}  // namespace
}  // namespace longhaul
