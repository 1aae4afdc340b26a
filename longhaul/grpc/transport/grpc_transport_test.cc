#include "longhaul/grpc/transport/grpc_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "longhaul/base/cancellation.h"
#include "longhaul/cluster/transport/peer_watch.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/grpc/grpc_fixture.h"
#include "longhaul/testing/error_fixture.h"

// What a Transport promises, as cluster/simulation/transport_test.cc has it, over real connections on loopback.
namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class GrpcTransportTest : public ::testing::Test {
 protected:
  std::string error_of_call(const std::string& method, WaitLimits limits = {}) {
    return coded_error_of([&] { pair_.call(method, limits); });
  }

  GrpcPair pair_;
};

Tensor floats(int64_t count) {
  Tensor tensor(kFloat, Shape{count});
  float* const values = static_cast<float*>(tensor.mutable_data());
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000);
  return tensor;
}

TEST_F(GrpcTransportTest, TensorsOfAllSizesComeBackAsTheyWere) {
  const std::vector<Tensor> tensors = {
      floats(0),
      Tensor::of<uint8_t>({7}),
      floats(17'500),
      floats(17'500'000),
      Tensor::of<std::string>({"peach", "", std::string(100'000, 'x')}),
      Tensor(kBFloat16, Shape{0, 3}),
      Tensor::scalar(2.5),
  };
  const Message reply = pair_.call("Echo", {}, {"ping", tensors});
  EXPECT_EQ(reply.header, "ping");
  ASSERT_EQ(reply.tensors.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(identical(reply.tensors[i], tensors[i])) << i;
}

TEST_F(GrpcTransportTest, AnEmptyMessageIsOne) {
  const Message reply = pair_.call("Echo", {}, {});
  EXPECT_EQ(reply.header, "");
  EXPECT_TRUE(reply.tensors.empty());
}

TEST_F(GrpcTransportTest, TheCallSaysWhoseItIs) {
  IncomingCall::Caller caller;
  pair_.ps->serve("Who", [&](std::shared_ptr<IncomingCall> call) {
    caller = call->caller();
    call->reply({});
  });
  pair_.call("Who");
  EXPECT_EQ(caller.task, pair_.worker->task());
  EXPECT_EQ(caller.incarnation, pair_.worker->incarnation());
  EXPECT_NE(caller.incarnation, 0u);
}

TEST_F(GrpcTransportTest, AHandlersErrorComesWholeAndNamesTheTask) {
  const std::string text = "no such step\n" + std::string(50'000, 'x');
  pair_.ps->serve("Fail", [&](std::shared_ptr<IncomingCall>) { throw NotFoundError(text); });
  EXPECT_EQ(error_of_call("Fail"), "NOT_FOUND: From " + pair_.ps->task() + ":\n" + text);
}

TEST(GrpcLateReply, AReplyMayComeLaterThanTheLimitOfConnections) {
  GrpcPair pair({.limits = {.connect = Seconds{0.5}, .lost_line = Seconds{60}}});
  const ReplyLater reply, limit;
  pair.start("Park", reply);
  ASSERT_TRUE(pair.come().reaches(1));
  pair.worker->start({.task = pair.ps->task(), .method = "Park", .time_left = Seconds{1}}, limit.done());
  EXPECT_EQ(code_of(limit.wait().error), Code::kDeadlineExceeded);
  EXPECT_FALSE(reply.has_come());
  pair.take_parked().at(0)->reply({"late", {}});
  EXPECT_EQ(reply.wait().message.header, "late");
}

TEST_F(GrpcTransportTest, ADeadlineNamesTheTaskAndTheTimeAndThePeerIsTold) {
  const Seconds began = Clock::real().now();
  EXPECT_THAT(
      error_of_call("Park", {.deadline = Seconds{0.3}}),
      StartsWith("DEADLINE_EXCEEDED: " + task_text(pair_.ps->task(), pair_.worker->address_of(pair_.ps->task())) +
                 " has not answered Park for "));
  EXPECT_GE((Clock::real().now() - began).count(), 0.29);
  EXPECT_TRUE(pair_.gone().reaches(1));
  const auto parked = pair_.take_parked();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_NEAR((parked[0]->deadline() - began).count(), 0.3, 2);
  parked[0]->reply({"too late", {}});  // dropped
}

TEST_F(GrpcTransportTest, ACancelEndsTheCallAndThePeerIsTold) {
  const ReplyLater reply;
  const auto call = pair_.start("Park", reply);
  ASSERT_TRUE(pair_.come().reaches(1));
  EXPECT_EQ(pair_.gone().times(), 0);
  call->cancel("the program stops");
  EXPECT_THAT(message_of(reply.wait().error), HasSubstr("the program stops"));
  EXPECT_TRUE(pair_.gone().reaches(1));
  EXPECT_EQ(pair_.ps->open_calls(), Transport::Open{});
  EXPECT_EQ(pair_.worker->open_calls(), Transport::Open{});
}

TEST_F(GrpcTransportTest, ManyCallsAtOnceGetTheirOwnReplies) {
  std::vector<ReplyLater> replies(500);
  for (size_t i = 0; i < replies.size(); ++i) {
    pair_.worker->start(pair_.request("Echo", {std::to_string(i), {Tensor::scalar<int64_t>(static_cast<int64_t>(i))}}),
                        replies[i].done());
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    const CallReply reply = replies[i].wait();
    EXPECT_EQ(reply.message.header, std::to_string(i)) << message_of(reply.error);
    EXPECT_EQ(reply.incarnation, pair_.ps->incarnation());
  }
}

TEST_F(GrpcTransportTest, RepliesMayComeFromAnyThread) {
  Mutex mutex;
  std::vector<std::thread> repliers;
  pair_.ps->serve("Thread", [&](std::shared_ptr<IncomingCall> call) {
    MutexLock lock(mutex);
    repliers.emplace_back([call] { call->reply(call->request()); });
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pair_.call("Thread").header, "ping");
  MutexLock lock(mutex);
  for (std::thread& replier : repliers) replier.join();
}

TEST_F(GrpcTransportTest, AnotherProcessAndAnotherTaskRefuseTheCall) {
  CallRequest request = pair_.request("Echo");
  request.incarnation = pair_.ps->incarnation();
  EXPECT_EQ(call_and_wait(*pair_.worker, request).header, "ping");
  request.incarnation = pair_.ps->incarnation() + 1;
  EXPECT_THAT(error_of<AbortedError>([&] { call_and_wait(*pair_.worker, request); }),
              HasSubstr("expects a different device incarnation"));
  pair_.tasks.set_address("/job:ps/replica:0/task:9", pair_.ps->port());
  request.task = "/job:ps/replica:0/task:9";
  request.incarnation = 0;
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { call_and_wait(*pair_.worker, request); }),
              HasSubstr("compare the addresses in the cluster specs"));
}

TEST_F(GrpcTransportTest, AnUnknownMethodAndATaskWithoutAnAddressAreNamed) {  // unlike CL-8
  EXPECT_THAT(error_of_call("Nothing"), HasSubstr("does not know the method Nothing"));
  EXPECT_THAT(
      refusal_of([&] { call_and_wait(*pair_.worker, {.task = "/job:x/replica:0/task:0", .method = "Echo"}); }),
      AllOf(HasSubstr("Echo: task /job:x/replica:0/task:0 is not in the cluster"), HasSubstr(pair_.ps->task())));
}

TEST_F(GrpcTransportTest, ACallThatIsLetGoIsAnError) {
  pair_.ps->serve("Forget", [](std::shared_ptr<IncomingCall>) {});
  EXPECT_THAT(error_of_call("Forget"), AllOf(StartsWith("INTERNAL: "), HasSubstr("was let go without a reply")));
}

TEST_F(GrpcTransportTest, StopEndsTheCallsInBothDirections) {
  const ReplyLater first, second, third;
  pair_.start("Park", first);
  ASSERT_TRUE(pair_.come().reaches(1));
  pair_.ps->stop("it is asked to end");
  EXPECT_THAT(message_of(first.wait().error), HasSubstr("it was stopped: it is asked to end"));
  EXPECT_THAT(error_of_call("Echo"), AllOf(StartsWith("UNAVAILABLE: "), HasSubstr("it is asked to end")));
  const auto other = pair_.tasks.start("/job:ps/replica:0/task:1");
  pair_.serve(*other);
  pair_.worker->start({.task = other->task(), .method = "Park"}, second.done());
  ASSERT_TRUE(pair_.come().reaches(2));
  pair_.worker->stop("so is this");
  EXPECT_TRUE(second.has_come());
  EXPECT_THAT(message_of(second.wait().error), HasSubstr("so is this"));
  EXPECT_TRUE(pair_.gone().reaches(1));
  pair_.worker->start({.task = other->task(), .method = "Echo"}, third.done());
  EXPECT_EQ(code_of(third.wait().error), Code::kUnavailable);
}

TEST_F(GrpcTransportTest, ATransportMayBeDestroyedWithCallsUnderWay) {
  GrpcTasks own;
  auto server = own.start("/job:a/replica:0/task:0");
  Happened come;
  std::vector<std::shared_ptr<IncomingCall>> parked;
  server->serve("Park", [&](std::shared_ptr<IncomingCall> call) {
    parked.push_back(std::move(call));
    come.add();
  });
  const ReplyLater reply;
  auto caller = GrpcTransport::create(
      {.task = "/job:longhaul_client/replica:0/task:0", .addresses = own.addresses(), .limits = patient_limits()});
  EXPECT_EQ(caller->port(), 0);
  caller->start({.task = server->task(), .method = "Park"}, reply.done());
  ASSERT_TRUE(come.reaches(1));
  caller.reset();
  EXPECT_TRUE(reply.has_come());
  EXPECT_EQ(code_of(reply.wait().error), Code::kUnavailable);
}

TEST_F(GrpcTransportTest, ATransportMayBeDestroyedInItsOwnCallback) {
  Happened destroyed;
  auto caller = GrpcTransport::create({.task = "/job:a/replica:0/task:0",
                                       .listen = "127.0.0.1:0",
                                       .addresses = pair_.tasks.addresses(),
                                       .limits = patient_limits()});
  caller->begin();
  Transport& transport = *caller;
  Happened may_go;
  transport.start(pair_.request("Echo"),
                  [&, kept = std::make_shared<std::shared_ptr<GrpcTransport>>(std::move(caller))](CallReply) {
                    EXPECT_TRUE(may_go.reaches(1));
                    kept->reset();
                    destroyed.add();
                  });
  may_go.add();
  EXPECT_TRUE(destroyed.reaches(1));
}

TEST_F(GrpcTransportTest, AForkedChildIsToldThatItCannotCall) {
  const pid_t child = fork();
  if (child == 0) {
    Code code = Code::kOk;
    pair_.worker->start(pair_.request("Echo"), [&](CallReply reply) { code = code_of(reply.error); });
    _exit(code == Code::kFailedPrecondition ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(pair_.call("Echo").header, "ping");
}

TEST_F(GrpcTransportTest, WhatACallbackThrowsEndsNothing) {
  Happened thrown;
  pair_.worker->start(pair_.request("Echo"), [&](CallReply) {
    thrown.add();
    throw std::runtime_error("a bug");
  });
  EXPECT_TRUE(thrown.reaches(1));
  EXPECT_EQ(pair_.call("Echo").header, "ping");
}

TEST_F(GrpcTransportTest, ATaskThatHasNotBegunSaysSo) {
  const auto late = pair_.tasks.prepare("/job:ps/replica:0/task:1");
  pair_.serve(*late);
  const CallRequest request{.task = late->task(), .method = "Echo", .message = {"ping", {}}};
  EXPECT_THAT(error_of<UnavailableError>([&] { call_and_wait(*pair_.worker, request); }),
              HasSubstr("its server was made, but not started"));
  late->begin();
  EXPECT_EQ(call_and_wait(*pair_.worker, request).header, "ping");
}

TEST_F(GrpcTransportTest, ATaskCallsItselfWithoutCopies) {
  const Tensor tensor = floats(1000);
  const Message reply = call_and_wait(*pair_.ps, pair_.request("Echo", {"ping", {tensor}}));
  EXPECT_EQ(reply.header, "ping");
  ASSERT_EQ(reply.tensors.size(), 1u);
  EXPECT_EQ(reply.tensors[0].data(), tensor.data());
  pair_.ps->serve("Fail", [](std::shared_ptr<IncomingCall>) { throw NotFoundError("no such step"); });
  EXPECT_EQ(error_of<NotFoundError>([&] { call_and_wait(*pair_.ps, pair_.request("Fail")); }),
            "From " + pair_.ps->task() + ":\nno such step");
}

// A timer of gRPC's rounds up to the next millisecond, and a call would need two of them. A busy machine delays some
// calls, so the fastest counts.
TEST_F(GrpcTransportTest, ATasksOwnCallWaitsForNoTimer) {
  Seconds fastest{1};
  for (int i = 0; i < 50; ++i) {
    const Seconds began = Clock::real().now();
    call_and_wait(*pair_.ps, pair_.request("Echo"));
    fastest = std::min(fastest, Clock::real().now() - began);
  }
  EXPECT_LT(fastest.count(), 0.0005);
}

TEST_F(GrpcTransportTest, ATasksOwnCallsEndAsOthersDo) {
  const ReplyLater cancelled, late, stopped;
  const auto call = pair_.ps->start(pair_.request("Park"), cancelled.done());
  ASSERT_TRUE(pair_.come().reaches(1));
  call->cancel("the program stops");
  EXPECT_EQ(code_of(cancelled.wait().error), Code::kCancelled);
  EXPECT_TRUE(pair_.gone().reaches(1));
  CallRequest request = pair_.request("Park");
  request.time_left = Seconds{0.1};
  pair_.ps->start(request, late.done());
  EXPECT_EQ(code_of(late.wait().error), Code::kDeadlineExceeded);
  EXPECT_TRUE(pair_.gone().reaches(2));
  pair_.ps->start(pair_.request("Park"), stopped.done());
  ASSERT_TRUE(pair_.come().reaches(3));
  pair_.ps->stop("it ends");
  EXPECT_EQ(code_of(stopped.wait().error), Code::kUnavailable);
}

TEST_F(GrpcTransportTest, AWatchTellsOfTheEndOfAProcess) {
  const Watched watched(*pair_.ps, [](const IncomingCall::Caller&, const std::string&) {});
  Happened lost;
  std::string why;
  const PeerWatch watch(*pair_.worker, pair_.ps->task(), pair_.ps->incarnation(), "one", [&](std::exception_ptr error) {
    why = message_of(error);
    lost.add();
  });
  const Seconds end = Clock::real().now() + Seconds{20};
  while (watched.watchers() == 0 && Clock::real().now() < end) std::this_thread::yield();
  EXPECT_EQ(lost.times(), 0);
  pair_.ps->stop("it ends");
  ASSERT_TRUE(lost.reaches(1));
  EXPECT_THAT(why, HasSubstr("it ends"));
}

TEST(GrpcPauses, ACallIsSentAfterItsPauseAndEndsInItByItsDeadlineACancelOrAStop) {
  GrpcPair pair;
  const auto start = [&](Seconds pause, std::optional<Seconds> time_left, const ReplyLater& reply) {
    CallRequest request = pair.request("Echo");
    request.pause = pause;
    request.time_left = time_left;
    return pair.worker->start(std::move(request), reply.done());
  };
  const ReplyLater sent, late, cancelled, stopped;
  const Seconds began = Clock::real().now();
  start(Seconds{0.2}, std::nullopt, sent);
  EXPECT_EQ(sent.wait().message.header, "ping");
  EXPECT_GE((Clock::real().now() - began).count(), 0.19);
  start(Seconds{3600}, Seconds{0.1}, late);
  EXPECT_EQ(code_of(late.wait().error), Code::kDeadlineExceeded);
  start(Seconds{5}, std::nullopt, cancelled)->cancel("nobody waits for it");
  EXPECT_EQ(code_of(cancelled.wait().error), Code::kCancelled);
  start(Seconds{0.5}, std::nullopt, stopped);
  pair.worker->stop("the program ends");
  EXPECT_EQ(code_of(stopped.wait().error), Code::kUnavailable);
}

}  // namespace
}  // namespace longhaul
