// Sessions of MasterService: their ends, and what is left of them.
#include <gmock/gmock.h>

#include "longhaul/base/deadline.h"
#include "longhaul/base/error.h"
#include "longhaul/cluster/wire/master_service_fixture.h"
#include "longhaul/cluster/wire/wire_sessions.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

namespace wire = proto::master;

using ::testing::HasSubstr;

// A run that waits in an empty queue.
class MasterSessionsTest : public MasterServiceTest {
 protected:
  std::shared_ptr<FakeWireCall> start_waiting(WireClient& client, const std::string& session,
                                              std::optional<Seconds> time_left = {}, int64_t timeout_ms = 0) {
    wire::RunStepRequest request = WireClient::run_request(session, {graph_.dequeue}, {});
    request.mutable_options()->set_timeout_in_ms(timeout_ms);
    return client.start("RunStep", request, time_left);
  }

  const QueueGraph graph_;
  const WireSession::NewSession make_ = options().new_session;
};

TEST_F(MasterSessionsTest, CallsOfAnUnknownSessionAreAborted) {  // MA-11
  WireClient client = this->client();
  const auto text = [](const auto& body) { return error_of<AbortedError>(body); };
  EXPECT_EQ(text([&] { client.close("0123"); }), "Session 0123 is not found. Possibly, this master has restarted.");
  EXPECT_EQ(text([&] { client.run("0123", {"x:0"}); }), "Session 0123 is not found.");
  EXPECT_EQ(text([&] { client.extend("0123", {}, 0); }), "Session 0123 is not found.");
  wire::MakeCallableRequest make;
  make.set_session_handle("0123");
  EXPECT_EQ(text([&] { client.call<wire::MakeCallableResponse>("MakeCallable", make); }), "Session 0123 is not found.");
  wire::RunCallableRequest run;
  run.set_session_handle("0123");
  EXPECT_EQ(text([&] { client.call<wire::RunCallableResponse>("RunCallable", run); }), "Session 0123 is not found.");
  wire::ReleaseCallableRequest release;
  release.set_session_handle("0123");
  EXPECT_EQ(text([&] { client.call<wire::ReleaseCallableResponse>("ReleaseCallable", release); }),
            "Session 0123 is not found.");
}

TEST_F(MasterSessionsTest, ACloseEndsTheRunsUnderWay) {  // SS-5
  WireClient client = this->client();
  const std::string session = client.create(graph_.graph_def);
  const auto run = start_waiting(client, session);
  ASSERT_TRUE(await_waiting(graph_, 1));
  client.close(session);
  ASSERT_TRUE(run->wait());
  EXPECT_THAT(error_of<CancelledError>([&] { run->answer(); }), HasSubstr("Session::Close"));
  EXPECT_THROW(client.close(session), AbortedError);
}

TEST_F(MasterSessionsTest, ACloseDoesNotWaitBehindTheRunsThatItEnds) {
  MasterServiceOptions few = options();
  few.most_threads = 2;
  WireClient client = this->client(few);
  const std::string session = client.create(graph_.graph_def);
  std::vector<std::shared_ptr<FakeWireCall>> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(start_waiting(client, session));
  ASSERT_TRUE(await_waiting(graph_, 2));  // and the third stands in the queue
  client.close(session);
  for (const auto& run : runs) {
    ASSERT_TRUE(run->wait());
    EXPECT_THROW(run->answer(), Error);
  }
}

TEST_F(MasterSessionsTest, AResetForgetsTheSessionsAndEmptiesContainers) {  // SS-3, MA-13
  WireClient client = this->client();
  const std::string session = client.create(variable_graph());
  client.run(session, {}, {"init"});
  const std::string waiting = client.create(graph_.graph_def);
  const auto run = start_waiting(client, waiting);
  client.reset({"there is none"});
  ASSERT_TRUE(run->wait());
  EXPECT_THROW(run->answer(), Error);
  EXPECT_THAT(error_of<AbortedError>([&] { client.run(session, {"Variable:0"}); }), HasSubstr("is not found"));
  EXPECT_EQ(service_->sessions(), 0u);
  const std::string after = client.create(variable_graph());
  EXPECT_EQ(client.run(after, {"Variable:0"})[0].num_elements(), 2);
  client.reset();
  EXPECT_THROW(client.run(client.create(variable_graph()), {"Variable:0"}), FailedPreconditionError);
}

TEST_F(MasterSessionsTest, AResetThatFailsStillEndsTheSessions) {
  MasterServiceOptions failing = options();
  failing.reset = [](const std::vector<std::string>&) { throw UnavailableError("a task is away"); };
  WireClient client = this->client(failing);
  client.create({});
  EXPECT_THROW(client.reset(), UnavailableError);
  EXPECT_EQ(service_->sessions(), 0u);
}

// Of the run's options, of the session, of the client.
TEST_F(MasterSessionsTest, ATimeoutEndsARunThatWaits) {  // SS-6
  WireClient client = this->client();
  const std::string session = client.create(graph_.graph_def);
  proto::ConfigProto config;
  config.set_operation_timeout_in_ms(20);
  const std::string impatient = client.create(graph_.graph_def, config);
  for (const auto& call : {start_waiting(client, session, {}, /*timeout_ms=*/20), start_waiting(client, impatient),
                           start_waiting(client, session, Seconds{0.02})}) {
    ASSERT_TRUE(call->wait());
    EXPECT_THROW(call->answer(), DeadlineExceededError);
  }
}

TEST_F(MasterSessionsTest, AStopEndsRunsAndSessionsAndRefusesCalls) {
  WireClient client = this->client();
  const std::string session = client.create(graph_.graph_def);
  const auto run = start_waiting(client, session);
  EXPECT_TRUE(service_->stop("its task ends", Seconds{60}));
  EXPECT_TRUE(run->has_ended());
  EXPECT_EQ(service_->sessions(), 0u);
  EXPECT_THAT(error_of<UnavailableError>([&] { client.create({}); }), HasSubstr("its task ends"));
}

TEST_F(MasterSessionsTest, SessionsAboveTheLimitAreRefused) {
  MasterServiceOptions few = options();
  few.most_sessions = 2;
  WireClient client = this->client(few);
  const std::string first = client.create({});
  client.create({});
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { client.create({}); }), HasSubstr("has 2 sessions of clients"));
  client.close(first);
  EXPECT_NO_THROW(client.create({}));
}

TEST_F(MasterSessionsTest, CallsAboveTheLimitAreRefused) {
  MasterServiceOptions few = options();
  few.most_threads = 2;
  few.most_queued = 0;
  WireClient client = this->client(few);
  const std::string session = client.create(graph_.graph_def);
  std::shared_ptr<FakeWireCall> refused;
  for (int i = 0; i < 3 && refused == nullptr; ++i) {
    const auto run = start_waiting(client, session);
    if (run->has_ended()) refused = run;
  }
  ASSERT_NE(refused, nullptr);
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { refused->answer(); }), HasSubstr("has 2 calls of clients"));
}

TEST_F(MasterSessionsTest, IdleSessionsEndIfTheServerSaysSo) {  // unlike MA-14
  testing::FakeClock clock;
  MasterServiceOptions collecting = options();
  collecting.clock = &clock;
  collecting.session_gc = Seconds{100};
  collecting.most_threads = 1;  // so a call begins when the one before it has ended
  WireClient client = this->client(collecting);
  const std::string idle = client.create({}), used = client.create(graph_.graph_def);
  const auto use = [&] { client.run(used, {}, {graph_.enqueue}, {{"value:0", Tensor::scalar(1.f)}}); };
  clock.advance(Seconds{60});
  use();
  clock.advance(Seconds{60});
  use();
  EXPECT_THROW(client.close(idle), AbortedError);
  EXPECT_EQ(service_->sessions(), 1u);
  clock.advance(Seconds{100});
  client.create({});
  EXPECT_THROW(use(), AbortedError);
  EXPECT_EQ(service_->sessions(), 1u);
  EXPECT_TRUE(service_->stop("the test ends", Seconds{60}));
  service_.reset();  // before its clock
}

TEST_F(MasterSessionsTest, ASessionIsNotIdleDuringACall) {
  testing::FakeClock clock;
  WireSessions sessions(clock, {.gc = Seconds{100}});
  const std::string handle = sessions.add(std::make_shared<WireSession>(proto::GraphDef(), SessionOptions(), make_));
  {
    const WireSessions::Use use(sessions, handle);
    clock.advance(Seconds{200});
    EXPECT_TRUE(sessions.take_idle().empty());
  }
  clock.advance(Seconds{90});
  EXPECT_TRUE(sessions.take_idle().empty());
  clock.advance(Seconds{10});
  EXPECT_EQ(sessions.take_idle().size(), 1u);
  EXPECT_EQ(sessions.size(), 0u);
}

TEST_F(MasterSessionsTest, ACallThatComesTooLateForItsSessionIsRefused) {  // SS-24
  WireSession session(variable_graph(), {}, make_);
  Deadline deadline(Clock::real());
  deadline.bring_forward(Seconds{20});
  session.close(deadline);
  const auto text = [](const auto& body) { return error_of<FailedPreconditionError>(body); };
  EXPECT_EQ(text([&] { session.run({.fetches = {"Variable:0"}}, {}, nullptr); }), "Session is closed.");
  EXPECT_EQ(text([&] { session.extend({}, 0); }), "Session is closed.");
  EXPECT_EQ(text([&] { session.list_devices(); }), "Session is closed.");
}

TEST_F(MasterSessionsTest, NoSessionIsMadeForAClientThatHasGone) {  // unlike MA-15
  MasterServiceOptions slow = options();
  slow.most_threads = 1;
  std::shared_ptr<FakeWireCall> call;
  slow.new_session = [&call, make = slow.new_session](Graph& graph, const SessionOptions& session) {
    call->go();
    return make(graph, session);
  };
  WireClient client = this->client(slow);
  call = std::make_shared<FakeWireCall>(MasterService::kPrefix + std::string("CreateSession"), Slices{});
  service_->handle(call);
  client.reset();  // begins when the call has ended
  EXPECT_FALSE(call->has_ended());
  EXPECT_EQ(service_->sessions(), 0u);
}

}  // namespace
}  // namespace longhaul
