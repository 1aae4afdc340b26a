#include "longhaul/cluster/server/task_server.h"

#include <gmock/gmock.h>

#include "longhaul/cluster/server/server_cluster_fixture.h"
#include "longhaul/proto/cluster.pb.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TaskServerTest : public ServerClusterTest {
 protected:
  std::unique_ptr<Session> session(Graph& graph, const SessionOptions& options = {},
                                   const std::string& task = kWorker) {
    return server(task).new_session(graph, options);
  }
  static std::vector<std::string> names(const std::vector<DeviceAttributes>& devices) {
    std::vector<std::string> names;
    for (const DeviceAttributes& device : devices) names.push_back(device.name);
    return names;
  }
};

TEST(ServerAddresses, OnlyLocalhostHasSeveralNames) {
  EXPECT_TRUE(is_same_address("10.0.0.1:1", "10.0.0.1:1"));
  EXPECT_TRUE(is_same_address("LocalHost:1", "localhost:1"));
  for (const std::string name : {"127.0.0.1:1", "[::1]:1"}) {
    EXPECT_TRUE(is_same_address("localhost:1", name)) << name;
    EXPECT_TRUE(is_same_address(name, "localhost:1")) << name;
    EXPECT_FALSE(is_same_address(name, "localhost:2")) << name;
    EXPECT_FALSE(is_same_address(name, "127.0.0.2:1")) << name;
  }
  EXPECT_FALSE(is_same_address("localhost:1", "127.0.0.2:1"));
  EXPECT_FALSE(is_same_address("127.0.0.1:1", "[::1]:1"));
  EXPECT_FALSE(is_same_address("127.0.0.1:1", "10.0.0.1:1"));
}

TEST_F(TaskServerTest, VariablesOutliveSessionsAndAreSeenFromEveryTask) {  // SS-1, SS-13, SE-13
  SharedModel model, same;
  {
    const auto first = session(model.graph);
    first->run(model.init);
    first->run(model.train);
    EXPECT_EQ(first->run(model.sum).item<float>(), 13);
  }
  const auto other = session(same.graph, {}, kPs);
  EXPECT_EQ(other->run(same.sum).item<float>(), 13);
  other->close();
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(TaskServerTest, AnIsolatedSessionSharesNothing) {  // SS-2, WK-11, unlike WK-2
  SharedModel model, alone;
  const auto shared = session(model.graph);
  shared->run(model.init);
  const auto isolated = session(alone.graph, {.isolate_session_state = true});
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { isolated->run(alone.sum); }),
              HasSubstr("Attempting to use uninitialized value"));
  isolated->run(alone.init);
  isolated->run(alone.train);
  EXPECT_EQ(isolated->run(alone.sum).item<float>(), 13);
  EXPECT_EQ(shared->run(model.sum).item<float>(), 11);
}

TEST_F(TaskServerTest, AResetEmptiesAllTasksAndEndsAllSessions) {  // SS-3, MA-13
  SharedModel model, again;
  const auto one = session(model.graph), other = session(model.graph, {}, kPs);
  one->run(model.init);
  other->run(model.sum);
  server(kWorker).reset({}, within(Seconds{10}));
  clock().settle();
  EXPECT_THAT(error_of<AbortedError>([&] { one->run(model.sum); }), HasSubstr("reset"));
  EXPECT_THROW(other->run(model.sum), AbortedError);
  const auto next = session(again.graph);
  EXPECT_THROW(next->run(again.sum), FailedPreconditionError);
}

TEST_F(TaskServerTest, AResetOfOneContainerLeavesTheOthers) {  // SS-3, SS-4, WK-10
  SharedModel model, again;
  session(model.graph)->run(model.init);
  server(kWorker).reset({"nobody"}, within(Seconds{10}));
  EXPECT_EQ(session(model.graph)->run(model.sum).item<float>(), 11);
  server(kWorker).reset({"ps"}, within(Seconds{10}));  // the default one of a ps task
  EXPECT_THROW(session(again.graph)->run(again.sum), FailedPreconditionError);
}

TEST_F(TaskServerTest, AResetNamesTheTaskThatDoesNotAnswer) {
  kill(kPs1);
  const Seconds began = now();
  EXPECT_THAT(error_of<UnavailableError>([&] { server(kWorker).reset({}, within(Seconds{10})); }), HasSubstr(kPs1));
  EXPECT_LE((now() - began).count(), 3);
}

TEST_F(TaskServerTest, DevicesAreThoseOfTheConfigAndOfTheFilters) {  // SE-9, MA-3, MA-5
  kill(kPs1);
  start(kPs1, {.device_count = {{"CPU", 2}}});
  EXPECT_THAT(names(server(kWorker).list_devices({}, within(Seconds{10}))),
              ElementsAre("/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0",
                          "/job:ps/replica:0/task:1/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:1"));
  EXPECT_THAT(names(server(kWorker).list_devices({"/job:ps/task:0"}, within(Seconds{10}))),
              ElementsAre("/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"));
  const auto of_ps1 = server(kPs1).list_devices({"/job:ps/task:1"}, within(Seconds{10}));
  EXPECT_EQ(server(kPs1).own_devices(), of_ps1);
  for (const DeviceAttributes& device : server(kPs1).list_devices({}, within(Seconds{10})))
    EXPECT_NE(device.incarnation, 0u) << device.name;
}

TEST_F(TaskServerTest, WhatASessionLeavesOutIsTheServers) {  // SE-10
  kill(kWorker);
  start(kWorker, {.operation_timeout = Seconds{3}, .device_filters = {"/job:ps/task:0"}});
  SharedModel model;
  EXPECT_THAT(refusal_of([&] { session(model.graph)->run(model.init); }),
              HasSubstr("Cannot assign a device for operation"));
  session(model.graph, {.device_filters = {"/job:ps"}})->run(model.init);
  kill(kPs1);
  const Seconds began = now();
  EXPECT_THROW(session(model.graph, {.device_filters = {"/job:ps"}})->run(model.train), DeadlineExceededError);
  EXPECT_LE((now() - began).count(), 4);
}

TEST_F(TaskServerTest, NothingIsSaidOfThreadsUntilItHasASession) {
  const std::string line = "each operation uses 3 threads";
  kill(kWorker);
  start(kWorker, {.intra_op_parallelism_threads = 3});
  EXPECT_THAT(logged(), Not(Contains(HasSubstr(line))));
  SharedModel model;
  session(model.graph)->run(model.init);
  EXPECT_THAT(logged(), Contains(HasSubstr(line)));
  set_intra_op_threads(1);
}

TEST_F(TaskServerTest, OptionsThatOnlyTheServerCanBeToldAreRefusedByName) {
  Graph graph;
  const auto refused = [&](const SessionOptions& options) {
    return error_of<UnimplementedError>([&] { session(graph, options); });
  };
  EXPECT_THAT(refused({.device_count = {{"CPU", 2}}}), StartsWith("SessionOptions::device_count is set"));
  EXPECT_THAT(refused({.intra_op_parallelism_threads = 2}), HasSubstr("intra_op_parallelism_threads"));
  EXPECT_THAT(refused({.snapshot_memory = 1000}), AllOf(HasSubstr("snapshot_memory"), HasSubstr("ServerOptions")));
}

TEST_F(TaskServerTest, ThePlacementIsLoggedOnceForEachOperation) {
  SharedModel model;
  const auto session = this->session(model.graph, {.log_device_placement = true});
  session->run(model.init);
  session->run(model.sum);
  EXPECT_THAT(logged(), Contains("v: (VariableV2): /job:ps/replica:0/task:0/device:CPU:0").Times(1));
}

TEST_F(TaskServerTest, AStopEndsWhatRunsAndTellsTheSessions) {
  SharedModel model;
  EmptyQueue empty("/job:ps/task:0");
  const auto trains = session(model.graph), waits = session(empty.graph);
  trains->run(model.init);
  std::string ended;
  Beside run = beside([&] { ended = coded_error_of([&] { waits->run(empty.element); }); });
  EXPECT_TRUE(passes([&] { return server(kPs).counts().jobs == 1; }, Seconds{5}));
  const Seconds began = now();
  EXPECT_TRUE(server(kPs).stop("it has to go", Seconds{10}));
  finish(run);
  EXPECT_THAT(ended, AnyOf(StartsWith("ABORTED: "), StartsWith("UNAVAILABLE: ")));
  EXPECT_LE((now() - began).count(), 1);
  EXPECT_THAT(error_of<AbortedError>([&] { trains->run(model.train); }), HasSubstr(kPs));
  EXPECT_TRUE(server(kPs).stop("again", Seconds{10}));
}

TEST_F(TaskServerTest, ASessionMayOutliveItsServer) {
  SharedModel model;
  const auto session = this->session(model.graph);
  session->run(model.init);
  EXPECT_TRUE(server(kWorker).stop("it has to go", Seconds{10}));
  EXPECT_THROW(session->run(model.train), Error);
  session->close();
}

TEST_F(TaskServerTest, ItsOwnTaskMustBeInTheCluster) {
  const auto transport = network().start("/job:other/replica:0/task:0");
  EXPECT_THAT(refusal_of([&] { TaskServer(transport, {.cluster = cluster()}); }), HasSubstr("other"));
}

// ---- A cluster of the session's own ----

TEST_F(TaskServerTest, ASessionMayBringItsOwnCluster) {  // SS-17
  SharedModel model("/job:state/task:1", "/job:state/task:5"), alone("/job:state/task:1", "/job:state/task:5");
  const SessionOptions own{.cluster_def = ClusterSpec({{"state", JobTasks{{1, "10.0.0.1:2222"}, {5, "10.0.0.2:2222"}}},
                                                       {"master", {"10.0.0.3:2222"}}})};
  const auto one = session(model.graph, own), other = session(alone.graph, own);
  one->run(model.init);
  for (int i = 0; i < 3; ++i) one->run(model.train);
  EXPECT_EQ(one->run(model.sum).item<float>(), 17);
  EXPECT_THROW(other->run(alone.sum), FailedPreconditionError) << "its state is isolated";
  EXPECT_THAT(names(one->list_devices()),
              ElementsAre("/job:master/replica:0/task:0/device:CPU:0", "/job:state/replica:0/task:1/device:CPU:0",
                          "/job:state/replica:0/task:5/device:CPU:0"));
  SharedModel by_old_names;
  EXPECT_THAT(refusal_of([&] { session(by_old_names.graph, own)->run(by_old_names.init); }),
              HasSubstr("Cannot assign a device"));
  one->close();
  other->close();
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(TaskServerTest, ItMayShareItsState) {  // SS-17
  SharedModel model, renamed("/job:state/task:0", "/job:state/task:1");
  session(model.graph)->run(model.init);
  const auto own = session(
      renamed.graph,
      {.cluster_def = ClusterSpec({{"state", {"10.0.0.1:2222", "10.0.0.2:2222"}}, {"master", {"10.0.0.3:2222"}}}),
       .share_session_state_in_clusterspec_propagation = true});
  EXPECT_EQ(own->run(renamed.sum).item<float>(), 11);
}

// Two servers on their own, with one name: the session's cluster tells them apart.
TEST_F(TaskServerTest, ServersOfDifferentClustersMayWorkTogether) {  // SS-17
  const std::string alone = "/job:local/replica:0/task:0";
  TaskServer& local = start(alone, {}, ClusterSpec({{"local", {"10.0.0.4:2222"}}}));
  SharedModel model("/job:w/task:0", "/job:w/task:1");
  const auto session =
      local.new_session(model.graph, {.cluster_def = ClusterSpec({{"w", {"10.0.0.4:2222", "10.0.0.1:2222"}}})});
  session->run(model.init);
  session->run(model.train);
  EXPECT_EQ(session->run(model.sum).item<float>(), 13);
}

TEST_F(TaskServerTest, TheServerMustBeOneTaskOfThatCluster) {  // SS-17
  Graph graph;
  EXPECT_THAT(refusal_of([&] { session(graph, {.cluster_def = ClusterSpec({{"w", {"10.0.0.1:2222"}}})}); }),
              AllOf(HasSubstr("The master (current machine) is not included"), HasSubstr("10.0.0.3:2222")));
}

TEST_F(TaskServerTest, ATaskOfThatClusterThatDiesEndsTheSession) {
  SharedModel model("/job:state/task:0", "/job:state/task:1");
  const auto session = this->session(
      model.graph,
      {.cluster_def = ClusterSpec({{"state", {"10.0.0.1:2222", "10.0.0.2:2222"}}, {"master", {"10.0.0.3:2222"}}})});
  session->run(model.init);
  kill(kPs1);
  EXPECT_THAT(error_of<AbortedError>([&] { session->run(model.train); }), HasSubstr("/job:state/replica:0/task:1"));
}

}  // namespace
}  // namespace longhaul
