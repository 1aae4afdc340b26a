#include "longhaul/cluster/spec/server_def.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "longhaul/proto/tensorflow_server.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

proto::ServerDef server_def(const std::string& text) {
  proto::ServerDef server;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &server)) << text;
  return server;
}

ClusterSpec ps_and_worker() {
  return ClusterSpec({{"ps", {"ps0:2222"}}, {"worker", {"worker0:2222", "worker1:2222"}}});
}

TEST(ServerDef, OfALocalServerHasTensorFlowsText) {  // SE-1
  const proto::ServerDef expected = server_def(R"(
      cluster { job { name: 'local' tasks { key: 0 value: 'localhost:2222' } } }
      job_name: 'local' task_index: 0 protocol: 'grpc')");
  const proto::ServerDef server = make_server_def(ClusterSpec({{"local", {"localhost:2222"}}}));
  EXPECT_TRUE(MessageDifferencer::Equals(server, expected)) << server.DebugString();
  EXPECT_EQ(ClusterSpec(server.cluster()), ClusterSpec({{"local", {"localhost:2222"}}}));
  EXPECT_EQ(own_address(local_server_def()), "localhost:0");
  EXPECT_EQ(own_task(local_server_def()), (TaskId{"local", 0}));
}

TEST(ServerDef, LeavesOutOnlyWhatThereIsOneOf) {  // SE-2
  EXPECT_EQ(own_task(make_server_def(ps_and_worker(), {.job_name = "ps"})), (TaskId{"ps", 0}));
  EXPECT_EQ(own_task(make_server_def(ClusterSpec({{"local", {{37, "localhost:0"}}}}))), (TaskId{"local", 37}));
  EXPECT_THAT(refusal_of([] { make_server_def(ps_and_worker()); }),
              HasSubstr("Must specify an explicit `job_name`. The cluster has the jobs [ps, worker]"));
  EXPECT_THAT(refusal_of([] { make_server_def(ps_and_worker(), {.job_name = "worker"}); }),
              HasSubstr("Must specify an explicit `task_index`. The job 'worker' has 2 tasks"));
  EXPECT_THAT(refusal_of([] { make_server_def(ClusterSpec()); }), HasSubstr("Must specify an explicit `job_name`"));
}

TEST(ServerDef, IsOverriddenByTheArguments) {  // SE-2
  proto::ConfigProto config;
  config.set_isolate_session_state(true);
  proto::ServerDef server = make_server_def(ps_and_worker(), {.job_name = "ps", .config = &config});
  config.Clear();
  config.set_allow_soft_placement(true);
  server = make_server_def(server, {.job_name = "worker", .task_index = 1, .config = &config});
  EXPECT_EQ(own_task(server), (TaskId{"worker", 1}));
  EXPECT_EQ(own_address(server), "worker1:2222");
  EXPECT_EQ(server.protocol(), "grpc");
  EXPECT_TRUE(server.default_session_config().isolate_session_state());
  EXPECT_TRUE(server.default_session_config().allow_soft_placement());
}

TEST(ServerDef, FillsInWhatAReceivedOneLeavesOut) {
  proto::ServerDef server;
  *server.mutable_cluster() = ClusterSpec({{"local", {"localhost:0"}}}).as_cluster_def();
  EXPECT_EQ(make_server_def(server).job_name(), "local");
  EXPECT_EQ(make_server_def(server).protocol(), "grpc");
}

TEST(ServerDef, RefusesATaskThatTheClusterLacks) {  // SE-7
  EXPECT_THAT(refusal_of([] { make_server_def(ps_and_worker(), {.job_name = "moon"}); }),
              HasSubstr("Job \"moon\" was not defined in cluster; its jobs are [ps, worker]"));
  for (const int missing : {-1, 2}) {
    EXPECT_THAT(refusal_of([&] { make_server_def(ps_and_worker(), {.job_name = "worker", .task_index = missing}); }),
                HasSubstr("Task " + std::to_string(missing) + " was not defined in job \"worker\", which has 2 tasks"));
  }
  EXPECT_THAT(
      error_of<NotFoundError>([] { make_server_def(ps_and_worker(), {.job_name = "ps", .protocol = "grpc+verbs"}); }),
      HasSubstr("No server factory registered for the given ServerDef: its protocol is \"grpc+verbs\". The "
                "available server factories are: [ grpc ]"));
}

TEST(ServerDef, RefusesTasksThatNobodyCouldFind) {
  for (const char* job : {"ps", "worker"}) {
    EXPECT_THAT(
        refusal_of([&] { make_server_def(ClusterSpec({{"ps", {"a:1"}}, {"worker", {"b:0"}}}), {.job_name = job}); }),
        HasSubstr("task 0 of job 'worker' has the address b:0: with port 0 the system chooses a port, which the other "
                  "tasks do not know. Give the task a port"));
  }
}

TEST(ServerDef, RefusesAMalformedClusterThatItReceives) {
  const proto::ServerDef server = server_def(R"(
      cluster { job { name: 'local' tasks { key: 0 value: '127.0.0.1' } } } job_name: 'local')");
  EXPECT_THAT(refusal_of([&] { make_server_def(server); }), HasSubstr("task 0 of job 'local': Could not interpret"));
}

}  // namespace
}  // namespace longhaul
