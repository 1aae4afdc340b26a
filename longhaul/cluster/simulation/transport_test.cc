#include "longhaul/cluster/transport/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/cluster/transport/call_and_wait.h"
#include "longhaul/cluster/transport/peer_watch.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class TransportTest : public ::testing::Test {
 protected:
  TransportTest() {
    ps_->serve("Echo", [](std::shared_ptr<IncomingCall> call) { call->reply(call->request()); });
    ps_->serve("Park", [this](std::shared_ptr<IncomingCall> call) {
      call->on_gone([this] { ++gone_; });
      parked_.push_back(std::move(call));
    });
  }
  ~TransportTest() override { parked_.clear(); }

  Message call(const std::string& method, const WaitLimits& limits = {}, uint64_t incarnation = 0) {
    return call_and_wait(
        *worker_, {.task = kPs, .method = method, .incarnation = incarnation, .message = {"ping", {tensor_}}}, limits);
  }
  Seconds now() { return network_.clock().now(); }
  void in(Seconds time, std::function<void()> event) { network_.clock().at(now() + time, std::move(event)); }
  void expect_nothing_left() {
    network_.clock().settle();
    EXPECT_EQ(worker_->open_calls(), Transport::Open{});
    EXPECT_EQ(ps_->open_calls(), Transport::Open{});
  }

  SimulatedNetwork network_;
  std::shared_ptr<Transport> ps_ = network_.start(kPs);
  std::shared_ptr<Transport> worker_ = network_.start(kWorker);
  std::vector<std::shared_ptr<IncomingCall>> parked_;
  int gone_ = 0;
  const Tensor tensor_ = Tensor::of<float>({1, 2});
};

TEST_F(TransportTest, ACallIsAnsweredAndItsTensorsAreNotCopied) {
  const Message reply = call("Echo");
  EXPECT_EQ(reply.header, "ping");
  ASSERT_EQ(reply.tensors.size(), 1u);
  EXPECT_EQ(reply.tensors[0].data(), tensor_.data());
  EXPECT_EQ(network_.calls(kWorker, kPs), 1u);
  EXPECT_EQ(network_.sent().size(), 2u);
  expect_nothing_left();
}

TEST_F(TransportTest, AHandlersErrorComesWholeAndNamesTheTask) {
  ps_->serve("Fail", [](std::shared_ptr<IncomingCall>) { throw NotFoundError("no such step"); });
  EXPECT_EQ(error_of<NotFoundError>([&] { call("Fail"); }), "From " + kPs + ":\nno such step");
  expect_nothing_left();
}

TEST_F(TransportTest, AReplyMayComeLater) {
  in(Seconds{5}, [&] { parked_.at(0)->reply({"late", {}}); });
  EXPECT_EQ(call("Park").header, "late");
  parked_.clear();
  expect_nothing_left();
}

TEST_F(TransportTest, ADeadlineNamesTheTaskAndTheTime) {
  const Seconds began = now();
  EXPECT_EQ(error_of<DeadlineExceededError>([&] { call("Park", {.deadline = now() + Seconds{12}}); }),
            "task " + kPs + " (10.0.0.1:2222) has not answered Park for 12 s");
  EXPECT_NEAR((now() - began).count(), 12, 0.01);
  ASSERT_EQ(parked_.size(), 1u);
  EXPECT_NEAR((parked_[0]->deadline() - began).count(), 12, 0.01);
  expect_nothing_left();
  EXPECT_EQ(gone_, 1);
  parked_[0]->reply({"too late", {}});  // dropped
  expect_nothing_left();
}

TEST_F(TransportTest, ADeadlineThatHasPassedSendsNothing) {
  EXPECT_THROW(call("Echo", {.deadline = now() - Seconds{1}}), DeadlineExceededError);
  EXPECT_TRUE(network_.sent().empty());
  expect_nothing_left();
}

TEST_F(TransportTest, ACancelEndsTheCallAndThePeerIsTold) {
  Cancellation cancellation;
  in(Seconds{1}, [&] { cancellation.cancel("the program stops"); });
  EXPECT_THAT(error_of<CancelledError>([&] { call("Park", {.cancellation = &cancellation}); }),
              HasSubstr("the program stops"));
  expect_nothing_left();
  EXPECT_EQ(gone_, 1);
}

TEST_F(TransportTest, ADeadPeerIsNoticedAtOnce) {
  in(Seconds{1}, [&] { network_.kill(kPs); });
  EXPECT_EQ(error_of<UnavailableError>([&] { call("Park"); }),
            "task " + kPs + " (10.0.0.1:2222) has not answered Park for 1.1 s");
  expect_nothing_left();
}

TEST_F(TransportTest, ADeadCallerIsNoticedAtOnce) {
  worker_->start({.task = kPs, .method = "Park"}, [](CallReply) {});
  network_.clock().settle();
  ASSERT_EQ(parked_.size(), 1u);
  network_.kill(kWorker);
  EXPECT_TRUE(network_.clock().run_until([&] { return gone_ == 1; }, Seconds{0.2}));
  expect_nothing_left();
}

TEST_F(TransportTest, ALineCutInOneDirectionIsNoticed) {
  network_.cut(kPs, kWorker);
  const Seconds began = now();
  EXPECT_THAT(error_of<UnavailableError>([&] { call("Park"); }), HasSubstr("for 3.4 s"));
  EXPECT_NEAR((now() - began).count(), 3.4, 0.01);
  EXPECT_EQ(gone_, 1);
  expect_nothing_left();
}

TEST_F(TransportTest, ALineCutDuringACallIsNoticed) {
  in(Seconds{1}, [&] { network_.cut(kWorker, kPs); });
  EXPECT_THAT(error_of<UnavailableError>([&] { call("Park"); }), HasSubstr("for 4.4 s"));
  EXPECT_EQ(gone_, 1);
  expect_nothing_left();
}

TEST_F(TransportTest, AShortCutLosesNothing) {
  network_.cut(kWorker, kPs);
  network_.cut(kPs, kWorker);
  in(Seconds{2}, [&] {
    network_.mend(kWorker, kPs);
    network_.mend(kPs, kWorker);
  });
  const Seconds began = now();
  EXPECT_EQ(call("Echo").header, "ping");
  EXPECT_NEAR((now() - began).count(), 2, 0.01);
  EXPECT_EQ(network_.waiting(), 0u);
  expect_nothing_left();
}

TEST_F(TransportTest, ATaskThatIsNotThereIsWaitedFor) {
  EXPECT_EQ(error_of<UnavailableError>([&] { call_and_wait(*worker_, {.task = kPs1, .method = "Echo"}); }),
            "task " + kPs1 + " has not answered Echo for 10 s");
  std::shared_ptr<Transport> late;
  in(Seconds{5}, [&] {
    late = network_.start(kPs1);
    late->serve("Echo", [](std::shared_ptr<IncomingCall> call) { call->reply(call->request()); });
  });
  EXPECT_EQ(call_and_wait(*worker_, {.task = kPs1, .method = "Echo", .message = {"hello", {}}}).header, "hello");
  expect_nothing_left();
}

TEST_F(TransportTest, AnotherProcessRefusesTheCall) {  // unlike RZ-4, unlike GP-15
  const uint64_t before = ps_->incarnation();
  EXPECT_EQ(call("Echo", {}, before).header, "ping");
  network_.kill(kPs);
  network_.clock().settle();
  const auto restarted = network_.start(kPs);
  EXPECT_NE(restarted->incarnation(), before);
  bool is_called = false;
  restarted->serve("Echo", [&](std::shared_ptr<IncomingCall>) { is_called = true; });
  const std::string text = error_of<AbortedError>([&] { call("Echo", {}, before); });
  EXPECT_THAT(text, HasSubstr("expects a different device incarnation"));
  EXPECT_THAT(text, HasSubstr("Your worker job (\"" + kPs + "\") was probably restarted"));
  EXPECT_FALSE(is_called);
  expect_nothing_left();
}

TEST_F(TransportTest, AnUnknownMethodIsNamed) {
  EXPECT_THAT(error_of<UnimplementedError>([&] { call("Nothing"); }), HasSubstr("does not know the method Nothing"));
}

TEST_F(TransportTest, ACallThatIsLetGoIsAnError) {
  ps_->serve("Forget", [](std::shared_ptr<IncomingCall>) {});
  EXPECT_THAT(error_of<InternalError>([&] { call("Forget"); }), HasSubstr("was let go without a reply"));
  expect_nothing_left();
}

TEST_F(TransportTest, StopEndsTheCallsInBothDirections) {
  int ended = 0;
  std::string why;
  worker_->start({.task = kPs, .method = "Park"}, [&](CallReply reply) {
    ++ended;
    why = message_of(reply.error);
  });
  network_.clock().settle();
  ps_->stop("it is asked to end");
  network_.clock().settle();
  EXPECT_EQ(ended, 1);
  EXPECT_THAT(why, HasSubstr("it was stopped: it is asked to end"));
  worker_->start({.task = kPs1, .method = "Park"}, [&](CallReply reply) {
    ++ended;
    why = message_of(reply.error);
  });
  worker_->stop("so is this");
  EXPECT_EQ(ended, 2);
  EXPECT_THAT(why, HasSubstr("so is this"));
  EXPECT_THROW(call("Echo"), UnavailableError);
  parked_.clear();
  expect_nothing_left();
}

TEST_F(TransportTest, ADoubledCallEndsOnceAndLeavesNothing) {
  network_.plan({.kind = NetworkFault::Kind::kDouble, .message = 1});
  int ended = 0;
  const auto call = worker_->start({.task = kPs, .method = "Park"}, [&](CallReply) { ++ended; });
  network_.clock().settle();
  EXPECT_EQ(parked_.size(), 2u);
  call->cancel("enough");
  expect_nothing_left();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(gone_, 2);
}

TEST_F(TransportTest, WhatACallbackThrowsEndsNothing) {
  worker_->start({.task = kPs, .method = "Echo"}, [](CallReply) { throw std::runtime_error("a bug"); });
  network_.clock().settle();
  EXPECT_EQ(call("Echo").header, "ping");
  expect_nothing_left();
}

TEST_F(TransportTest, AWatchIsTellingOfTheEndOfAProcess) {
  std::vector<std::string> gone, lost;
  Watched watched(*ps_, [&](const IncomingCall::Caller& caller, const std::string& session) {
    gone.push_back(caller.task + " " + session);
  });
  const auto watch = [&](const std::string& session) {
    return std::make_unique<PeerWatch>(*worker_, kPs, ps_->incarnation(), session, [&](std::exception_ptr error) {
      lost.push_back(std::string(code_name(code_of(error))) + ": " + message_of(error));
    });
  };
  auto one = watch("one"), two = watch("two"), three = watch("three");
  network_.clock().settle();
  EXPECT_EQ(watched.watchers(), 3u);
  watched.end("one", "it was closed");
  two.reset();
  network_.clock().settle();
  EXPECT_EQ(watched.watchers(), 1u);
  EXPECT_THAT(gone, ::testing::ElementsAre(kWorker + " two"));
  EXPECT_THAT(lost, ::testing::ElementsAre(AllOf(HasSubstr("ABORTED"), HasSubstr("it was closed"))));
  network_.kill(kPs);
  EXPECT_TRUE(network_.clock().run_until([&] { return lost.size() == 2; }, Seconds{0.2}));
  EXPECT_THAT(lost.at(1), HasSubstr("UNAVAILABLE: task " + kPs));
}

TEST(TransportThroughBytes, TheReplyIsTheSame) {
  SimulatedNetwork network({.through_bytes = true});
  const auto ps = network.start(kPs), worker = network.start(kWorker);
  ps->serve("Echo", [](std::shared_ptr<IncomingCall> call) { call->reply(call->request()); });
  const Tensor tensor = Tensor::of<std::string>({"peach", ""});
  const Message reply =
      call_and_wait(*worker, {.task = kPs, .method = "Echo", .message = {"ping", {tensor, Tensor::scalar(2.5f)}}});
  ASSERT_EQ(reply.tensors.size(), 2u);
  EXPECT_NE(reply.tensors[0].data(), tensor.data());
  EXPECT_TRUE(identical(reply.tensors[0], tensor));
  EXPECT_EQ(reply.tensors[1].item<float>(), 2.5f);
}

TEST(TransportOnThreads, RepliesMayComeFromAnyThread) {
  SimulatedNetwork network({.threads = SimulatedClock::Threads::kSeveral});
  const auto ps = network.start(kPs), worker = network.start(kWorker);
  Mutex mutex;
  std::vector<std::thread> repliers;
  ps->serve("Echo", [&](std::shared_ptr<IncomingCall> call) {
    MutexLock lock(mutex);
    repliers.emplace_back([call] { call->reply(call->request()); });
  });
  std::vector<std::thread> callers;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (int j = 0; j < 20; ++j) {
        const std::string text = std::to_string(i * 100 + j);
        const Message reply = call_and_wait(*worker, {.task = kPs, .method = "Echo", .message = {text, {}}});
        if (reply.header == text) ++answered;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (std::thread& replier : repliers) replier.join();
  EXPECT_EQ(answered, 80);
  EXPECT_EQ(worker->open_calls(), Transport::Open{});
}

}  // namespace
}  // namespace longhaul
