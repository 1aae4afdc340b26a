#include "longhaul/grpc/transport/grpc_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

#include "longhaul/cluster/transport/task_frame.h"
#include "longhaul/grpc/grpc_fixture.h"
#include "longhaul/grpc/raw_channel_fixture.h"
#include "longhaul/grpc/tcp_proxy_fixture.h"
#include "longhaul/grpc/transport/credentials.h"
#include "longhaul/grpc/transport/line_settings.h"
#include "longhaul/grpc/transport/peer_line.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kMasterPath[] = "/tensorflow.MasterService/";

Slices slices_of(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return {{*owner, owner}};
}

std::string reply_bytes(const std::string& header) {
  TaskFrame frame;
  frame.reply.emplace().set_incarnation(1);
  frame.message.header = header;
  return joined(write_frame(frame));
}

// A task, and a caller that sends it any bytes to any path.
class GrpcPortTest : public ::testing::Test {
 protected:
  std::shared_ptr<OutgoingCall> send(const std::string& path, const std::string& bytes, const ReplyLater& reply,
                                     std::optional<Seconds> time_left = std::nullopt) {
    const OutgoingCall::Peer peer{.task = pair_.ps->task(), .method = path, .began = Clock::real().now()};
    const auto call = std::make_shared<OutgoingCall>(peer, reply.done());
    line_.start(call, {.path = path, .time_left = time_left, .frame = slices_of(bytes)});
    return call;
  }
  CallReply reply_to(const std::string& path, const std::string& bytes) {
    const ReplyLater reply;
    send(path, bytes, reply);
    return reply.wait();
  }
  std::string error_of_bytes(const std::string& path, const std::string& bytes) {
    const std::exception_ptr error = reply_to(path, bytes).error;
    return std::string(code_name(code_of(error))) + ": " + message_of(error);
  }

  GrpcPair pair_;
  PeerLine line_{{.address = "127.0.0.1:" + std::to_string(pair_.ps->port()),
                  .credentials = caller_credentials({}),
                  .limits = patient_limits(),
                  .calls = std::make_shared<CallsInGrpc>()}};
};

TEST_F(GrpcPortTest, AFrameThatIsDamagedOrOfSomethingElseIsRefusedByName) {
  TaskFrame frame;
  frame.call.emplace().set_method("Echo");
  frame.call->set_to_task(pair_.ps->task());
  frame.call->set_from_task("/job:x/replica:0/task:0");
  frame.call->set_from_incarnation(1);
  const std::string good = joined(write_frame(frame));
  EXPECT_EQ(reply_to("/longhaul.Task/Echo", good).error, nullptr);
  for (const std::string& bad :
       {std::string("\xff\xff\xff"), good.substr(0, good.size() - 1), reply_bytes("x"), std::string()}) {
    EXPECT_THAT(error_of_bytes("/longhaul.Task/Echo", bad),
                AllOf(StartsWith("INVALID_ARGUMENT: "), HasSubstr("/longhaul.Task/Echo")));
  }
  EXPECT_THAT(error_of_bytes("/longhaul.Task/Park", good), HasSubstr("came with a frame of something else"));
  std::string changed = good;
  changed[good.size() / 2] ^= 1;
  const CallReply reply = reply_to("/longhaul.Task/Echo", changed);
  EXPECT_TRUE(reply.is_broken) << "the line's fault: the call may be repeated";
  EXPECT_THAT(message_of(reply.error), HasSubstr("broke: task /job:ps/replica:0/task:0: /longhaul.Task/Echo: a frame "
                                                 "was damaged on its way"));
}

TEST_F(GrpcPortTest, AReplyThatIsDamagedOnItsWayIsABrokenLine) {
  pair_.ps->serve_wire(kMasterPath, [&](std::shared_ptr<WireCall> call) {
    std::string changed = reply_bytes("pong");
    changed[changed.size() - 8] ^= 1;
    call->reply(slices_of(changed));
  });
  const CallReply reply = reply_to(std::string(kMasterPath) + "ListDevices", "x");
  EXPECT_TRUE(reply.is_broken);
  EXPECT_EQ(code_of(reply.error), Code::kUnavailable);
  EXPECT_THAT(message_of(reply.error), HasSubstr("a frame was damaged on its way"));
}

TEST_F(GrpcPortTest, APathThatNobodyServesIsUnimplemented) {  // unlike WK-1
  EXPECT_THAT(error_of_bytes("/tensorflow.WorkerService/RunGraph", "x"),
              AllOf(StartsWith("UNIMPLEMENTED: "), HasSubstr("does not know the method /tensorflow.WorkerService")));
}

TEST_F(GrpcPortTest, AnotherProtocolHasItsHandler) {
  std::optional<Seconds> time_left;
  std::string path, request;
  pair_.ps->serve_wire(kMasterPath, [&](std::shared_ptr<WireCall> call) {
    path = call->path();
    time_left = call->time_left();
    request = joined(call->take_request());
    call->reply(slices_of(reply_bytes("pong")));
    call->fail(InternalError("too late"));
  });
  const ReplyLater reply;
  send(std::string(kMasterPath) + "ListDevices", std::string(100'000, 'x'), reply, Seconds{30});
  EXPECT_EQ(reply.wait().message.header, "pong") << message_of(reply.wait().error);
  EXPECT_EQ(path, "/tensorflow.MasterService/ListDevices");
  EXPECT_EQ(request, std::string(100'000, 'x'));
  ASSERT_TRUE(time_left.has_value());
  EXPECT_NEAR(time_left->count(), 30, 5);
}

TEST_F(GrpcPortTest, AWireCallsFailureKeepsItsCodeAndText) {
  std::string text = "no graph\nof that name";
  pair_.ps->serve_wire(kMasterPath, [&](std::shared_ptr<WireCall> call) {
    if (call->path().ends_with("Throw")) throw InvalidArgumentError(text);
    if (call->path().ends_with("Fail")) call->fail(UnauthenticatedError(text));
  });
  const std::string path = kMasterPath;
  EXPECT_THAT(error_of_bytes(path + "Throw", "x"), AllOf(StartsWith("INVALID_ARGUMENT: "), HasSubstr(text)));
  EXPECT_THAT(error_of_bytes(path + "Fail", "x"), AllOf(StartsWith("UNAUTHENTICATED: "), HasSubstr(text)));
  EXPECT_THAT(error_of_bytes(path + "Forget", "x"), HasSubstr("was let go without a reply"));
  text = std::string(50'000, '\n');
  EXPECT_THAT(error_of_bytes(path + "Fail", "x"), HasSubstr("(50000 bytes in all)"));
}

TEST(GrpcPortLimits, AnAnswerAboveTheLimitIsAnError) {
  GrpcPair pair({.limits = patient_limits(), .frames = {.most_bytes = 100'000}});
  pair.ps->serve_wire(kMasterPath, [&](std::shared_ptr<WireCall> call) {
    call->reply(slices_of(std::string(call->path().ends_with("Large") ? 100'001 : 99'000, 'x')));
  });
  const RawChannel channel("127.0.0.1:" + std::to_string(pair.ps->port()));
  constexpr int kResourceExhausted = 8;
  const RawReply large = channel.call(std::string(kMasterPath) + "Large", "");
  EXPECT_EQ(large.code, kResourceExhausted);
  EXPECT_THAT(large.text, HasSubstr("an answer of 100001 bytes is above the limit, 100000"));
  EXPECT_EQ(channel.call(std::string(kMasterPath) + "Small", "").code, 0);
}

TEST_F(GrpcPortTest, MoreThanTheMostOpenCallsAreRefused) {
  constexpr int kMost = 10'000;
  std::vector<ReplyLater> replies(kMost);
  for (const ReplyLater& reply : replies) pair_.start("Park", reply);
  ASSERT_TRUE(pair_.come().reaches(kMost, Seconds{120}));
  const ReplyLater last;
  pair_.start("Park", last);
  EXPECT_EQ(code_of(last.wait(Seconds{60}).error), Code::kResourceExhausted);
  pair_.take_parked().clear();  // they are let go
  EXPECT_EQ(pair_.call("Echo").header, "ping");
}

TEST_F(GrpcPortTest, AWireCallHearsThatItsCallerHasGone) {
  Happened come, gone;
  std::shared_ptr<WireCall> kept;
  pair_.ps->serve_wire(kMasterPath, [&](std::shared_ptr<WireCall> call) {
    call->on_gone([&] { gone.add(); });
    kept = std::move(call);
    come.add();
  });
  const ReplyLater reply;
  const auto call = send(std::string(kMasterPath) + "RunStep", "x", reply);
  ASSERT_TRUE(come.reaches(1));
  EXPECT_EQ(gone.times(), 0);
  call->cancel("enough");
  EXPECT_TRUE(gone.reaches(1));
  kept->on_gone([&] { gone.add(); });  // at once
  EXPECT_EQ(gone.times(), 2);
  kept->reply(slices_of("too late"));  // dropped
}

TEST_F(GrpcPortTest, StopEndsWireCalls) {
  Happened come;
  std::shared_ptr<WireCall> kept;
  pair_.ps->serve_wire(kMasterPath, [&](std::shared_ptr<WireCall> call) {
    kept = std::move(call);
    come.add();
  });
  const ReplyLater reply;
  send(std::string(kMasterPath) + "RunStep", "x", reply);
  ASSERT_TRUE(come.reaches(1));
  pair_.ps->stop("it ends");
  EXPECT_THAT(message_of(reply.wait().error), HasSubstr("it ends"));
  EXPECT_THAT(error_of_bytes(std::string(kMasterPath) + "RunStep", "x"), HasSubstr("it ends"));
}

TEST_F(GrpcPortTest, GarbageEndsItsConnectionAndNothingElse) {
  std::string random(10'000, '\0');
  for (size_t i = 0; i < random.size(); ++i) random[i] = static_cast<char>(i * 167 + i / 251);
  for (const std::string& bytes :
       {random, std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + random}) {
    const RawSocket socket = RawSocket::connected_to(pair_.ps->port());
    socket.send(bytes);
    EXPECT_TRUE(socket.is_closed_within(Seconds{20})) << bytes.substr(0, 20);
  }
  EXPECT_EQ(pair_.call("Echo").header, "ping");
}

TEST(GrpcAddress, OneThatIsInUseIsNamedWithTheRemedy) {
  const RawSocket taken = RawSocket::listening();
  const std::string address = "127.0.0.1:" + std::to_string(taken.port());
  EXPECT_THAT(error_of<AlreadyExistsError>(
                  [&] { GrpcTransport::create({.task = "/job:a/replica:0/task:0", .listen = address}); }),
              AllOf(HasSubstr(address), HasSubstr("another process has this port"), HasSubstr("port 0")));
}

TEST(GrpcAddress, AnotherTransportsPortIsInUse) {
  GrpcTasks tasks;
  const int port = tasks.start("/job:a/replica:0/task:0")->port();
  EXPECT_GT(port, 0);
  EXPECT_THROW(
      GrpcTransport::create({.task = "/job:a/replica:0/task:1", .listen = "127.0.0.1:" + std::to_string(port)}),
      AlreadyExistsError);
}

TEST(GrpcAddress, OneOfTheIpv6LoopbackMayBeUsed) {
  std::shared_ptr<GrpcTransport> server;
  try {
    server = GrpcTransport::create({.task = "/job:a/replica:0/task:0", .listen = "[::1]:0"});
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[::1]:0"));  // a machine without IPv6
    return;
  }
  server->serve("Echo", [](std::shared_ptr<IncomingCall> call) { call->reply(call->take_request()); });
  server->begin();
  const auto caller = GrpcTransport::create(
      {.task = "/job:b/replica:0/task:0", .addresses = {{server->task(), "[::1]:" + std::to_string(server->port())}}});
  EXPECT_EQ(call_and_wait(*caller, {.task = server->task(), .method = "Echo", .message = {"ping", {}}}).header, "ping");
}

TEST(GrpcFrames, OneAboveTheLimitIsRefusedBeforeItIsSent) {
  GrpcPair pair({.limits = patient_limits(), .frames = {.most_bytes = 10'000}});
  const Tensor large(kUInt8, Shape{20'000}), small(kUInt8, Shape{6'000});
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { pair.call("Echo", {}, {"", {large}}); }),
              AllOf(HasSubstr("Echo to " + pair.ps->task()), HasSubstr("a frame of 20"), HasSubstr("limit, 10000")));
  pair.ps->serve("Twice", [&](std::shared_ptr<IncomingCall> call) { call->reply({"", {small, small}}); });
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { pair.call("Twice"); }),
              AllOf(HasSubstr("the reply to /longhaul.Task/Twice"), HasSubstr("limit, 10000")));
  EXPECT_EQ(pair.call("Echo", {}, {"ping", {small}}).header, "ping");
}

TEST(GrpcFrames, OneAboveTheReceiversLimitIsRefusedByItsGrpc) {
  GrpcTasks tasks;
  const auto caller = tasks.start("/job:a/replica:0/task:0");
  const auto strict = GrpcTransport::create({.task = "/job:b/replica:0/task:0",
                                             .listen = "127.0.0.1:0",
                                             .limits = patient_limits(),
                                             .frames = {.most_bytes = 10'000}});
  strict->serve("Echo", [](std::shared_ptr<IncomingCall> call) { call->reply(call->take_request()); });
  strict->begin();
  caller->set_addresses({{strict->task(), "127.0.0.1:" + std::to_string(strict->port())}});
  const Tensor large(kUInt8, Shape{20'000});
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] {
                call_and_wait(*caller, {.task = strict->task(), .method = "Echo", .message = {"", {large}}});
              }),
              HasSubstr("10000"));
}

// -2: gRPC's own.
int value_of(const std::vector<LineSetting>& settings, const std::string& name) {
  for (const LineSetting& setting : settings) {
    if (setting.name == name) return setting.value;
  }
  return -2;
}

TEST(GrpcSettings, TheLimitOfASilentLineIsKept) {
  const TransportLimits limits;
  for (const auto& settings : {caller_settings(limits, {}), server_settings(limits, {})}) {
    EXPECT_EQ(value_of(settings, "grpc.keepalive_time_ms"), 1000);
    EXPECT_EQ(value_of(settings, "grpc.keepalive_timeout_ms"), 2400);
    EXPECT_EQ(value_of(settings, "grpc.keepalive_permit_without_calls"), 1);
    EXPECT_EQ(value_of(settings, "grpc.max_receive_message_length"), -1);
  }
  EXPECT_EQ(limits.longest_cut(), Seconds{3.4}) << "of question and answer together: noticed within 3.5 s";
  EXPECT_EQ(value_of(caller_settings(limits, {}), "grpc.enable_retries"), 0);
  EXPECT_EQ(value_of(server_settings(limits, {}), "grpc.so_reuseport"), 0);
}

TEST_F(GrpcPortTest, AStreamThatWasRemovedMeansThatThePeerCannotBeReached) {  // SS-16
  pair_.ps->serve_wire(kMasterPath, [](std::shared_ptr<WireCall> call) { call->fail(UnknownError("Stream removed")); });
  const CallReply reply = reply_to(std::string(kMasterPath) + "RunStep", "x");
  EXPECT_TRUE(reply.is_broken);
  EXPECT_EQ(code_of(reply.error), Code::kUnavailable);
  EXPECT_THAT(message_of(reply.error), AllOf(HasSubstr(pair_.ps->task()), HasSubstr(" broke: Stream removed")));
}

TEST(GrpcSettings, MessagesAreLargePausesShortAndNothingIsCompressed) {  // unlike SE-11
  constexpr int kLargestOfTensorFlow = INT_MAX;
  EXPECT_GE(most_frame_bytes({}), static_cast<uint64_t>(kLargestOfTensorFlow));
  for (const auto& settings : {caller_settings({}, {}), server_settings({}, {})}) {
    EXPECT_EQ(value_of(settings, "grpc.max_receive_message_length"), -1) << "the limit is most_frame_bytes()";
    EXPECT_EQ(value_of(settings, "grpc.max_send_message_length"), -1);
    EXPECT_EQ(value_of(settings, "grpc.compression_enabled_algorithms_bitset"), 1) << "identity alone";
  }
  EXPECT_EQ(value_of(caller_settings({}, {}), "grpc.initial_reconnect_backoff_ms"), 100);
  EXPECT_EQ(value_of(caller_settings({}, {}), "grpc.max_reconnect_backoff_ms"), 1000);
}

TEST(GrpcServers, SixtyFourInOneProcessAnswer) {
  GrpcTasks tasks;
  std::vector<std::shared_ptr<GrpcTransport>> servers;
  for (int i = 0; i < 64; ++i) {
    servers.push_back(tasks.start("/job:ps/replica:0/task:" + std::to_string(i)));
    servers.back()->serve("Who", [i](std::shared_ptr<IncomingCall> call) { call->reply({std::to_string(i), {}}); });
  }
  std::vector<ReplyLater> replies(64);
  for (size_t i = 0; i < 64; ++i) servers[0]->start({.task = servers[i]->task(), .method = "Who"}, replies[i].done());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(replies[i].wait().message.header, std::to_string(i));
}

}  // namespace
}  // namespace longhaul
