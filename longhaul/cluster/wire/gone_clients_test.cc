// Clients of MasterService that die, or no longer wait, while their runs are under way.
#include <gmock/gmock.h>

#include "longhaul/base/error.h"
#include "longhaul/cluster/wire/master_service_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class GoneClientsTest : public MasterServiceTest {
 protected:
  using Call = std::shared_ptr<FakeWireCall>;

  // A run that waits in the empty queue.
  Call start_waiting(WireClient& client, const std::string& session, int64_t request_id = 0) {
    auto request = WireClient::run_request(session, {graph_.dequeue}, {});
    request.set_request_id(request_id);
    return client.start("RunStep", request);
  }
  void put(WireClient& client, const std::string& session, float value) {
    client.run(session, {}, {graph_.enqueue}, {{"value:0", Tensor::scalar(value)}});
  }
  static void expect_cancelled(FakeWireCall& call) {
    ASSERT_TRUE(call.wait());
    EXPECT_THAT(error_of<CancelledError>([&] { call.answer(); }), HasSubstr("the client has gone"));
  }

  QueueGraph graph_;
};

TEST_F(GoneClientsTest, MoreOfThemThanThereAreThreadsLeaveTheServiceAbleToAnswer) {
  const size_t most = options().most_threads;
  WireClient client = this->client();
  const std::string session = client.create(graph_.graph_def);
  std::vector<Call> calls;
  for (size_t i = 0; i < most + 1; ++i) calls.push_back(start_waiting(client, session));
  ASSERT_TRUE(await_waiting(graph_, most));  // and one stands in the queue of calls
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) (*call)->go();
  for (size_t i = 0; i < most; ++i) expect_cancelled(*calls[i]);
  ASSERT_TRUE(await_waiting(graph_, 0));
  put(client, session, 5);
  EXPECT_EQ(client.run(session, {graph_.dequeue})[0].item<float>(), 5);  // which none of them has taken
  EXPECT_FALSE(calls[most]->has_ended());                                // it did not begin
}

TEST_F(GoneClientsTest, TheirRunsChangeNothing) {  // MA-9
  const Variable v = ops::variable(graph_.root, "v", Tensor::scalar(1.f));
  const Operation take = graph_.graph.find_output(graph_.dequeue).op();
  const std::string step =
      ops::assign(graph_.root.with_control_dependencies({take}), v, ops::constant(graph_.root, 2.f)).name();
  WireClient client = this->client();
  const std::string session = client.create(to_graph_def(graph_.graph));
  client.run(session, {}, {v.initializer().name()});
  const Call call = client.start("RunStep", WireClient::run_request(session, {step}, {}));
  ASSERT_TRUE(await_waiting(graph_, 1));
  call->go();
  expect_cancelled(*call);
  EXPECT_EQ(client.run(session, {"v:0"})[0].item<float>(), 1);
  put(client, session, 5);
  EXPECT_EQ(client.run(session, {step})[0].item<float>(), 2);
}

TEST_F(GoneClientsTest, OthersOfTheSameSessionGoOn) {
  WireClient client = this->client();
  const std::string session = client.create(graph_.graph_def);
  const Call gone = start_waiting(client, session), here = start_waiting(client, session);
  ASSERT_TRUE(await_waiting(graph_, 2));
  gone->go();
  expect_cancelled(*gone);
  put(client, session, 5);
  ASSERT_TRUE(here->wait());
  const auto response = WireClient::parsed<proto::master::RunStepResponse>(here->answer());
  EXPECT_EQ(from_proto(response.tensor(0).tensor()).item<float>(), 5);
}

TEST_F(GoneClientsTest, ARepetitionWhoseClientHasGoneHoldsNoThread) {
  MasterServiceOptions few = options();
  few.most_threads = 2;
  WireClient client = this->client(few);
  const std::string session = client.create(graph_.graph_def);
  const Call first = start_waiting(client, session, /*request_id=*/6);
  ASSERT_TRUE(await_waiting(graph_, 1));
  const Call again = start_waiting(client, session, /*request_id=*/6);
  again->go();
  put(client, session, 5);  // on the thread that it leaves
  ASSERT_TRUE(first->wait());
  EXPECT_NO_THROW(first->answer());
}

TEST_F(GoneClientsTest, CallablesEndLikeOtherRuns) {
  WireClient client = this->client();
  const std::string session = client.create(graph_.graph_def);
  proto::master::MakeCallableRequest make;
  make.set_session_handle(session);
  make.mutable_options()->add_fetch(graph_.dequeue);
  proto::master::RunCallableRequest run;
  run.set_session_handle(session);
  run.set_handle(client.call<proto::master::MakeCallableResponse>("MakeCallable", make).handle());
  const Call call = client.start("RunCallable", run);
  ASSERT_TRUE(await_waiting(graph_, 1));
  call->go();
  expect_cancelled(*call);
  EXPECT_TRUE(await_waiting(graph_, 0));
}

}  // namespace
}  // namespace longhaul
