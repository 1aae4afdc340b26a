#include <gmock/gmock.h>

#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string not_found(const std::string& target) {
  Graph graph;
  return error_of<NotFoundError>([&] { new_session(target, graph); });
}

TEST(SessionTargets, WhatIsNoTargetIsNamedWithThoseThatAre) {  // SS-8
  EXPECT_THAT(not_found("nonexistent"), AllOf(HasSubstr("No session factory registered for the given session options: "
                                                        "{target: \"nonexistent\""),
                                              HasSubstr("\"local\""), HasSubstr("grpc://host:port")));
  EXPECT_THAT(not_found("localhost:2222"), HasSubstr("Did you mean \"grpc://localhost:2222\"?"));
  Graph graph;
  EXPECT_THAT(refusal_of([&] { new_session("grpc://", graph); }),
              HasSubstr("Could not interpret \"\" as a host-port pair"));
  EXPECT_THROW(new_session("grpc://host", graph), InvalidArgumentError);
}

TEST(SessionTargets, LocalIsOneServerOfThisProcess) {  // unlike SS-8
  CounterModel model, same;
  const auto first = new_session("local", model.graph);
  first->run(model.init);
  first->run(model.add);
  EXPECT_EQ(same.value(*new_session("local", same.graph)), 1);
  EXPECT_EQ(first->list_devices().at(0).name, "/job:local/replica:0/task:0/device:CPU:0");
  Session::reset("local");
  EXPECT_THROW(first->run(model.add), AbortedError);
  EXPECT_THROW(same.value(*new_session("local", same.graph)), FailedPreconditionError);
}

TEST(SessionTargets, TheProcessItselfIsAsBefore) {  // SG-1
  CounterModel model, other;
  const auto session = new_session("", model.graph), beside = new_session("", other.graph);
  session->run(model.init);
  EXPECT_THROW(other.value(*beside), FailedPreconditionError);
  EXPECT_THROW(new_session("", model.graph, {.device_filters = {"/job:ps"}}), UnimplementedError);
}

TEST(SessionTargets, OneThatDoesNotAnswerIsNotWaitedForForEver) {  // SS-4, SS-14
  Graph graph;
  const std::string target = "grpc://localhost:" + std::to_string(free_port());
  EXPECT_THROW(new_session(target, graph, {.operation_timeout = Seconds{0.2}}), DeadlineExceededError);
}

TEST(SessionTargets, EachLoopbackAddressIsAHostOfItsOwn) {
  const std::string port = ":" + std::to_string(free_port());
  const Server one(ClusterSpec({{"one", {"127.0.0.1" + port}}})), two(ClusterSpec({{"two", {"127.0.0.2" + port}}}));
  Graph graph;
  EXPECT_THAT(new_session(one.target(), graph)->list_devices().at(0).name, StartsWith("/job:one/"));
  EXPECT_THAT(new_session(two.target(), graph)->list_devices().at(0).name, StartsWith("/job:two/"));
  EXPECT_THAT(new_session("grpc://localhost" + port, graph)->list_devices().at(0).name, StartsWith("/job:one/"));
}

TEST(SessionTargets, AServerThatHasStoppedIsSkipped) {
  const std::string port = ":" + std::to_string(free_port());
  const ClusterSpec cluster({{"ps", {"localhost" + port}}});
  Server first(cluster, {.listen = "127.0.0.1" + port}), second(cluster, {.listen = "127.0.0.2" + port});
  first.stop();
  CounterModel model;
  const auto session = new_session(first.target(), model.graph);
  session->run(model.init);
  EXPECT_EQ(model.value(*session), 0);
  second.stop();
  EXPECT_THROW(new_session(first.target(), model.graph)->run(model.init), Error) << "at once: none is left";
}

TEST(SessionTargets, AResetNeedsATarget) {  // SS-4
  EXPECT_THROW(Session::reset("nonexistent"), NotFoundError);
}

TEST(SessionTargets, ClientsMayHaveCredentials) {
  EXPECT_THROW(set_client_security({.certificate_file = "missing.crt"}), Error);
}

TEST(SessionTargets, HowLongATaskIsWaitedForHoldsForTheServerToo) {
  Graph graph;
  const std::string target = "grpc://localhost:" + std::to_string(free_port());
  const Seconds start = Clock::real().now();
  EXPECT_THROW(new_session(target, graph, {.task_wait = Seconds{0.2}}), Error);
  EXPECT_LT((Clock::real().now() - start).count(), 20);
}

}  // namespace
}  // namespace longhaul
