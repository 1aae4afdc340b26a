#include <gmock/gmock.h>

#include "longhaul/cluster/server/server_cluster_fixture.h"
#include "longhaul/proto/cluster.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// Sessions of a program that is no task.
class ClientSessionTest : public ServerClusterTest {
 protected:
  std::unique_ptr<ClusterSession> session(Graph& graph, const SessionOptions& options = {},
                                          const std::string& target = "10.0.0.3:2222") {
    return new_client_session(client_, target, graph, options, Seconds{60});
  }

  const std::shared_ptr<Transport> client_ = start_client();
};

TEST_F(ClientSessionTest, AServerSaysWhoItIs) {
  const ServerTask server = ask_server(*client_, "10.0.0.1:2222", Seconds{60}, {});
  EXPECT_EQ(server.task, kPs);
  EXPECT_EQ(server.address, "10.0.0.1:2222");
  EXPECT_EQ(server.cluster, cluster());
}

TEST_F(ClientSessionTest, WhatIsOpenIsDoneByTheTarget) {
  SharedModel model;
  const auto session = this->session(model.graph);
  session->run(model.init);
  session->run(model.train);
  EXPECT_EQ(session->run(model.sum).item<float>(), 13);
  EXPECT_GT(network().calls(kPs, kWorker), 0u) << "the sum is computed on the worker";
  EXPECT_EQ(network().calls(kPs, kClient) + network().calls(kWorker, kClient), 0u) << "nobody calls a client";
  SharedModel same;
  EXPECT_EQ(server(kPs).new_session(same.graph)->run(same.sum).item<float>(), 13);
  session->close();
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(ClientSessionTest, ThePathThroughAServerGivesWhatOneOfItsOwnGives) {  // SE-12
  SharedModel model;
  server(kWorker).new_session(model.graph)->run(model.init);
  const auto here = server(kWorker).new_session(model.graph);
  const auto there = session(model.graph);
  EXPECT_TRUE(identical(here->run(model.sum), there->run(model.sum)));
  EXPECT_EQ(here->list_devices(), there->list_devices());
}

TEST_F(ClientSessionTest, TheServersDefaultsHoldForClientsToo) {  // SE-10
  kill(kWorker);
  start(kWorker, {.isolate_session_state = true});
  SharedModel model;
  session(model.graph)->run(model.init);
  EXPECT_THROW(session(model.graph)->run(model.sum), FailedPreconditionError);
}

TEST_F(ClientSessionTest, AServerThatIsNotUpYetIsWaitedForAndNamed) {  // MA-2, unlike SS-9
  kill(kWorker);
  clock().at(now() + Seconds{25}, [this] { start(kWorker); });
  SharedModel model;
  const Seconds began = now();
  const auto session = this->session(model.graph);
  EXPECT_GE((now() - began).count(), 25);
  EXPECT_THAT(logged(), Contains("CreateSession still waiting for response from worker: 10.0.0.3:2222"));
  session->run(model.init);
}

// Its target is up, another task is not.
TEST_F(ClientSessionTest, ATaskThatARunNamesIsWaitedForAndNamed) {  // MA-2
  kill(kPs1);
  clock().at(now() + Seconds{25}, [this] { start(kPs1); });
  SharedModel model;
  const auto session = this->session(model.graph);
  session->run(model.v.initializer());
  session->run(model.init);
  EXPECT_THAT(logged(), Contains(HasSubstr("still waiting for response from worker: " + kPs1)));
  EXPECT_EQ(session->run(model.sum).item<float>(), 11);
}

TEST_F(ClientSessionTest, NobodyIsWaitedForForEver) {  // unlike SS-15
  kill(kWorker);
  SharedModel model;
  Seconds began = now();
  EXPECT_THAT(error_of<UnavailableError>([&] { session(model.graph); }), HasSubstr("10.0.0.3:2222"));
  EXPECT_NEAR((now() - began).count(), 60, 11);
  began = now();
  EXPECT_THROW(session(model.graph, {.operation_timeout = Seconds{3}}), DeadlineExceededError);  // SS-14
  EXPECT_NEAR((now() - began).count(), 3, 0.5);
}

TEST_F(ClientSessionTest, ATaskThatIsNoServerIsRefused) {
  Graph graph;
  const auto transport = network().start("/job:worker/replica:0/task:9");
  Worker worker(*transport, std::make_shared<TaskResources>(TaskOptions{.clock = &clock()}));
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { session(graph, {}, transport->address_of(transport->task())); }),
              HasSubstr("cannot serve sessions"));
}

TEST_F(ClientSessionTest, AClientThatDiesLeavesNothingBehind) {  // unlike MA-14, unlike MA-15
  SharedModel model;
  const auto trains = session(model.graph);
  trains->run(model.init);
  trains->run(model.train);
  kill(kClient);
  const Seconds began = now();
  EXPECT_TRUE(nothing_is_left());
  EXPECT_LE((now() - began).count(), 5);
  SharedModel same;
  EXPECT_EQ(server(kPs).new_session(same.graph)->run(same.sum).item<float>(), 13) << "its steps stay";
}

TEST_F(ClientSessionTest, ATargetThatIsRestartedEndsTheSession) {  // unlike RC-7
  SharedModel model;
  const auto session = this->session(model.graph);
  session->run(model.init);
  session->run(model.sum);
  kill(kWorker);
  EXPECT_THROW(session->run(model.sum), AbortedError);
  start(kWorker);
  EXPECT_THROW(session->run(model.sum), AbortedError);
  EXPECT_EQ(this->session(model.graph)->run(model.sum).item<float>(), 11);
}

TEST_F(ClientSessionTest, ItsClusterMayBeItsOwn) {  // SS-17
  SharedModel model("/job:state/task:0", "/job:state/task:1");
  const auto session = this->session(
      model.graph,
      {.cluster_def = ClusterSpec({{"state", {"10.0.0.1:2222", "10.0.0.2:2222"}}, {"master", {"10.0.0.3:2222"}}})});
  session->run(model.init);
  session->run(model.train);
  EXPECT_EQ(session->run(model.sum).item<float>(), 13);
  EXPECT_THAT(refusal_of([&] {
                this->session(model.graph, {.cluster_def = ClusterSpec({{"state", {"10.0.0.1:0", "10.0.0.2:2222"}},
                                                                        {"master", {"10.0.0.3:2222"}}})});
              }),
              HasSubstr("task 0 of job 'state' has the address 10.0.0.1:0"));
}

}  // namespace
}  // namespace longhaul
