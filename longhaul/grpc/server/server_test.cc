#include "longhaul/grpc/server/server.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/proto/tensorflow_server.pb.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/signals/stop_signals.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

ClusterSpec alone_at(const std::string& address) {
  return ClusterSpec({{"local", {address}}});
}

TEST(ServerTest, ALocalServerHasItsRealPortInItsTarget) {  // SE-3
  const auto server = Server::create_local_server();
  EXPECT_THAT(server->target(), MatchesRegex("grpc://localhost:[0-9]+"));
  EXPECT_THAT(server->target(), Not(HasSubstr(":0")));
  EXPECT_EQ(server->server_def().job_name(), "local");
  EXPECT_NE(Server::create_local_server()->target(), server->target());
}

TEST(ServerTest, OneThatWasNotStartedAnswersOnceItIs) {  // SE-3
  const auto server = Server::create_local_server({}, /*start=*/false);
  auto session = std::async(std::launch::async, [&] {
    CounterModel model;
    const auto made = new_session(server->target(), model.graph, {.use_rpc_for_inprocess_master = true});
    made->run(model.init);
    return model.value(*made);
  });
  EXPECT_EQ(session.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  server->start();
  EXPECT_EQ(session.get(), 0);
}

TEST(ServerTest, ItIsNewStartedAndStopped) {  // unlike SE-8
  const auto server = Server::create_local_server({}, /*start=*/false);
  EXPECT_THROW(server->join(), FailedPreconditionError);
  server->start();
  server->start();
  EXPECT_FALSE(server->join(Seconds{0.01}));
  server->stop();
  server->stop();
  EXPECT_TRUE(server->join(Seconds{0}));
  EXPECT_EQ(error_of<FailedPreconditionError>([&] { server->start(); }), "Server has stopped.");
}

TEST(ServerTest, AStopEndsAJoin) {  // unlike SE-5
  const auto server = Server::create_local_server();
  std::thread waits([&] { server->join(); });
  server->stop();
  waits.join();
}

TEST(ServerTest, ASignalEndsAJoin) {
  const auto server = Server::create_local_server();
  std::thread waits([&] { server->join(); });
  ASSERT_TRUE(comes_true(sigterm_is_handled));
  raise(SIGTERM);
  waits.join();
  EXPECT_THROW(server->start(), FailedPreconditionError);
  EXPECT_TRUE(is_ended_by_sigterm()) << "the handlers are those of before";
}

TEST(ServerTest, APortInUseIsNamed) {  // unlike SE-4
  const auto server = Server::create_local_server();
  const std::string address = server->target().substr(sizeof("grpc://") - 1);
  EXPECT_THAT(error_of<AlreadyExistsError>([&] { Server second(alone_at(address)); }),
              HasSubstr(address.substr(address.find(':'))));
}

TEST(ServerTest, AnAddressWithoutAPortIsRefused) {  // unlike SE-4, unlike CL-7
  EXPECT_THAT(refusal_of([] { Server server(alone_at("127.0.0.1")); }), HasSubstr("127.0.0.1"));
  EXPECT_THAT(refusal_of([] { Server server(ClusterSpec({{"local", {"localhost:0", ":abc"}}})); }), HasSubstr(":abc"));
}

TEST(ServerTest, OtherAddressesThanLoopbackNeedCredentials) {  // unlike SE-6
  EXPECT_THAT(error_of<PermissionDeniedError>([] { Server server(alone_at("0.0.0.0:0")); }), HasSubstr("0.0.0.0"));
  EXPECT_NO_THROW(Server(alone_at("localhost:0"), {.listen = "127.0.0.1:0"}));
}

TEST(ServerTest, AnAddressThatIsNotOfThisMachineIsNamed) {  // unlike SE-6
  EXPECT_THAT(refusal_of([] { Server server(alone_at("192.0.2.1:0"), {.security = {.insecure = true}}); }),
              HasSubstr("192.0.2.1"));
}

TEST(ServerTest, AJobMayBeSparse) {  // unlike SE-4
  const Server server(ClusterSpec({{"local", JobTasks{{37, "localhost:0"}}}}));
  CounterModel model("/job:local/task:37");
  const auto session = new_session(server.target(), model.graph);
  session->run(model.init);
  EXPECT_EQ(session->list_devices().at(0).name, "/job:local/replica:0/task:37/device:CPU:0");
}

TEST(ServerTest, ItsDevicesAreThoseOfItsConfig) {  // SE-4, SE-9
  const auto server = Server::create_local_server({.device_count = {{"CPU", 2}}});
  Graph graph;
  const auto devices = new_session(server->target(), graph)->list_devices();
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[1].name, "/job:local/replica:0/task:0/device:CPU:1");
  EXPECT_NE(devices[0].incarnation, 0u);
  const auto other = Server::create_local_server();
  EXPECT_NE(new_session(other->target(), graph)->list_devices().at(0).incarnation, devices[0].incarnation);
}

TEST(ServerTest, TheConfigIsThatOfTheDefinitionAndOfTheOptions) {  // SE-2, SE-4
  proto::ServerDef definition;
  (*(*definition.mutable_cluster()->add_job()).mutable_tasks())[0] = "localhost:0";
  definition.mutable_cluster()->mutable_job(0)->set_name("local");
  definition.mutable_default_session_config()->set_operation_timeout_in_ms(500);
  const Server server(definition, {.config = {.isolate_session_state = true}});
  EXPECT_EQ(server.server_def().default_session_config().operation_timeout_in_ms(), 500);
  EXPECT_TRUE(server.server_def().default_session_config().isolate_session_state());
  EXPECT_EQ(server.server_def().protocol(), "grpc");
  WaitingModel model;
  EXPECT_THROW(new_session(server.target(), model.graph)->run(model.element), DeadlineExceededError);
}

TEST(ServerTest, SixtyFourFitIntoAProcess) {  // SE-13
  LoopbackCluster cluster({{"worker", 64}});
  CounterModel model("/job:worker/task:63");
  new_session(cluster.target("worker", 0), model.graph)->run(model.init);
  for (const int index : {1, 17, 62}) new_session(cluster.target("worker", index), model.graph)->run(model.add);
  EXPECT_EQ(model.value(*new_session(cluster.target("worker", 63), model.graph)), 3);
}

// What it does in a child, by its errors: a letter for each.
std::string attempts_in_child(Server& server) {
  Graph graph;
  const auto tried = [](const std::function<void()>& attempt) {
    return error_of<FailedPreconditionError>(attempt).find("forked") != std::string::npos ? "f" : "-";
  };
  return std::string() + tried([&] { server.start(); }) + tried([&] { server.stop(); }) +
         tried([&] { server.join(Seconds{0.01}); }) + tried([&] { new_session(server.target(), graph); }) +
         tried([&] { new_session("local", graph); }) + tried([] { Server::create_local_server(); }) +
         tried([&] { new_session("grpc://localhost:1", graph); });
}

TEST(ServerTest, AForkedChildIsRefusedAndDoesNotHang) {
  const auto server = Server::create_local_server();
  const pid_t child = fork();
  if (child == 0) _exit(attempts_in_child(*server) == "fffffff" ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  CounterModel model;
  EXPECT_NO_THROW(new_session(server->target(), model.graph)->run(model.init)) << "the parent goes on";
}

}  // namespace
}  // namespace longhaul
