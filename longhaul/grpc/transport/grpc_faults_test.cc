#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "longhaul/grpc/grpc_fixture.h"
#include "longhaul/grpc/tcp_proxy_fixture.h"
#include "longhaul/testing/error_fixture.h"

// What a line does that is cut, and a peer that dies. A peer is asked after a second, and has 0.7 s to answer: what
// is noticed is awaited much longer.
namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class GrpcFaults : public ::testing::Test {
 protected:
  GrpcFaults() { pair_.tasks.set_address(pair_.ps->task(), proxy_.port()); }

  void park(const ReplyLater& reply) {
    pair_.start("Park", reply);
    ASSERT_TRUE(pair_.come().reaches(1));
  }
  static void expect_broken(const CallReply& reply, const std::string& what = " broke: ") {
    EXPECT_TRUE(reply.is_broken);
    EXPECT_EQ(code_of(reply.error), Code::kUnavailable);
    EXPECT_THAT(message_of(reply.error), AllOf(HasSubstr("task /job:ps/replica:0/task:0"), HasSubstr(what)));
  }
  static Seconds now() { return Clock::real().now(); }

  GrpcPair pair_{{.limits = short_limits()}};
  TcpProxy proxy_{pair_.ps->port()};
};

TEST(GrpcLimits, ADeadPeerIsNoticedByBothSidesAtOnce) {
  GrpcPair pair({.limits = patient_limits()});
  TcpProxy proxy(pair.ps->port());
  pair.tasks.set_address(pair.ps->task(), proxy.port());
  const ReplyLater reply;
  pair.start("Park", reply);
  ASSERT_TRUE(pair.come().reaches(1));
  proxy.reset();
  EXPECT_TRUE(reply.wait().is_broken);
  EXPECT_EQ(code_of(reply.wait().error), Code::kUnavailable);
  EXPECT_THAT(message_of(reply.wait().error),
              AllOf(StartsWith("the connection to task " + pair.ps->task() + " ("), HasSubstr(") broke"),
                    Not(HasSubstr("has not answered")), Not(HasSubstr("recvmsg:C"))));
  EXPECT_TRUE(pair.gone().reaches(1));
  const auto echo = [&] {  // on a new connection, once gRPC has left the old one
    try {
      return pair.call("Echo").header;
    } catch (const UnavailableError&) {
      return std::string();
    }
  };
  const Seconds end = Clock::real().now() + Seconds{20};
  std::string answer = echo();
  while (answer.empty() && Clock::real().now() < end) answer = echo();
  EXPECT_EQ(answer, "ping");
}

TEST_F(GrpcFaults, ALineThatIsCutIsNoticedByBothSides) {
  const ReplyLater reply;
  park(reply);
  const Seconds began = now();
  proxy_.cut(true, true);
  expect_broken(reply.wait());
  EXPECT_TRUE(pair_.gone().reaches(1));
  EXPECT_LT((now() - began).count(), 10);
}

TEST_F(GrpcFaults, ALineThatIsCutOnTheWayToThePeerIsNoticedByBothSides) {
  const ReplyLater reply;
  park(reply);
  proxy_.cut(true, false);
  expect_broken(reply.wait());
  EXPECT_TRUE(pair_.gone().reaches(1));
}

TEST_F(GrpcFaults, ALineThatIsCutOnTheWayBackIsNoticedByBothSides) {
  const ReplyLater reply;
  park(reply);
  proxy_.cut(false, true);
  expect_broken(reply.wait());
  EXPECT_TRUE(pair_.gone().reaches(1));
}

TEST_F(GrpcFaults, ACallOnALineThatWasCutMeanwhileIsNotRepeated) {
  EXPECT_EQ(pair_.call("Echo").header, "ping");
  proxy_.cut(true, true);
  const ReplyLater reply;
  pair_.start("Park", reply);
  expect_broken(reply.wait());
  proxy_.reset();
  proxy_.mend();
  const auto is_answered = [this] {
    try {
      return pair_.call("Echo", {.deadline = Seconds{20}}).header == "ping";
    } catch (const UnavailableError&) {  // on the line that was reset just now
      return false;
    }
  };
  EXPECT_TRUE(is_answered() || is_answered());
  EXPECT_EQ(pair_.come().times(), 0);
}

TEST(GrpcLimits, AShortCutLosesNothing) {
  GrpcPair pair({.limits = patient_limits()});
  TcpProxy proxy(pair.ps->port());
  pair.tasks.set_address(pair.ps->task(), proxy.port());
  EXPECT_EQ(pair.call("Echo").header, "ping");
  proxy.cut(true, true);
  const ReplyLater reply, limit;
  pair.start("Echo", reply);
  pair.worker->start({.task = pair.ps->task(), .method = "Echo", .time_left = Seconds{0.3}}, limit.done());
  EXPECT_EQ(code_of(limit.wait().error), Code::kDeadlineExceeded);
  EXPECT_FALSE(reply.has_come());
  proxy.mend();
  EXPECT_EQ(reply.wait().message.header, "ping");
}

// The proxy stands for a process that is stopped: its machine takes the bytes, and nobody answers.
TEST(GrpcLimits, APauseShorterThanTheLimitLosesNothing) {
  GrpcPair pair({.limits = {.connect = Seconds{20}, .lost_line = Seconds{3}}});
  TcpProxy proxy(pair.ps->port());
  pair.tasks.set_address(pair.ps->task(), proxy.port());
  const ReplyLater parked, pause;
  pair.start("Park", parked);
  ASSERT_TRUE(pair.come().reaches(1));
  proxy.cut(true, true);
  pair.worker->start({.task = pair.ps->task(), .method = "Echo", .time_left = Seconds{2.8}}, pause.done());
  EXPECT_EQ(code_of(pause.wait().error), Code::kDeadlineExceeded);
  proxy.mend();
  EXPECT_EQ(pair.call("Echo").header, "ping");
  EXPECT_FALSE(parked.has_come());
  EXPECT_EQ(pair.gone().times(), 0);
  for (const auto& call : pair.take_parked()) call->reply({"late", {}});
  EXPECT_EQ(parked.wait().message.header, "late");
}

TEST_F(GrpcFaults, ATaskThatIsNotThereIsWaitedForAndTheErrorSaysWhy) {
  int port = 0;
  {
    const RawSocket taken = RawSocket::listening();
    port = taken.port();
  }
  pair_.tasks.set_address(pair_.ps->task(), port);
  const Seconds began = now();
  const ReplyLater reply;
  pair_.start("Park", reply);
  expect_broken(reply.wait(), "has not answered Park for");
  EXPECT_GE((now() - began).count(), 0.9);
  EXPECT_THAT(message_of(reply.wait().error), HasSubstr("Connection refused"));
  const std::string error = coded_error_of([&] { pair_.call("Echo", {.deadline = Seconds{0.1}}); });
  EXPECT_THAT(error, AllOf(StartsWith("DEADLINE_EXCEEDED: "), HasSubstr("has not answered Echo for")));
}

TEST_F(GrpcFaults, ATaskThatComesLateGetsTheCallThatWaits) {
  RawSocket silent = RawSocket::listening();  // accepts, and says nothing
  const int port = silent.port();
  GrpcPair patient({.limits = patient_limits()});
  const std::string name = "/job:ps/replica:0/task:1";
  patient.tasks.set_address(name, port);
  const ReplyLater reply;
  patient.worker->start({.task = name, .method = "Echo", .message = {"ping", {}}}, reply.done());
  silent.close();
  auto late = GrpcTransport::create({.task = name, .listen = "127.0.0.1:" + std::to_string(port)});
  patient.serve(*late);
  late->begin();
  EXPECT_EQ(reply.wait().message.header, "ping");
}

TEST_F(GrpcFaults, APeerThatSaysNothingFromTheBeginningIsUnavailable) {
  const RawSocket silent = RawSocket::listening();
  pair_.tasks.set_address(pair_.ps->task(), silent.port());
  const ReplyLater reply;
  pair_.start("Park", reply);
  expect_broken(reply.wait(), "has not answered Park for");
}

TEST_F(GrpcFaults, AnotherProtocolOnTheOtherSideIsUnavailable) {
  const RawSocket http = RawSocket::listening();
  std::thread server([&] {
    const RawSocket caller(::accept(http.descriptor(), nullptr, nullptr));
    caller.send("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  pair_.tasks.set_address(pair_.ps->task(), http.port());
  const ReplyLater reply;
  pair_.start("Park", reply);
  expect_broken(reply.wait(), "has not answered Park for");
  server.join();
}

TEST_F(GrpcFaults, ARestartedTaskIsFoundAtItsNewAddress) {
  EXPECT_EQ(pair_.call("Echo").header, "ping");
  const uint64_t before = pair_.ps->incarnation();
  pair_.ps = pair_.tasks.start(pair_.ps->task());
  pair_.serve(*pair_.ps);
  EXPECT_NE(pair_.ps->incarnation(), before);
  const ReplyLater reply;
  pair_.start("Echo", reply);
  EXPECT_EQ(reply.wait().incarnation, pair_.ps->incarnation());
}

}  // namespace
}  // namespace longhaul
