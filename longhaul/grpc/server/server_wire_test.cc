// Servers as programs of others see them: TensorFlow's MasterService, by its messages alone.
#include <gmock/gmock.h>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/grpc/raw_channel_fixture.h"
#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/proto/master.pb.h"

namespace longhaul {
namespace {

namespace wire = proto::master;

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr int kInvalidArgument = 3, kFailedPrecondition = 9, kAborted = 10, kUnavailable = 14;

class ServerWireTest : public ::testing::Test {
 protected:
  RawReply call(const std::string& method, const google::protobuf::MessageLite& request) const {
    return channel_.call("/tensorflow.MasterService/" + method, request);
  }
  std::string create() {
    wire::CreateSessionRequest request;
    *request.mutable_graph_def() = to_graph_def(model_.graph);
    const RawReply reply = call("CreateSession", request);
    EXPECT_EQ(reply.code, 0) << reply.text;
    return reply.as<wire::CreateSessionResponse>().session_handle();
  }
  RawReply run(const std::string& session, const Operation& target) const {
    wire::RunStepRequest request;
    request.set_session_handle(session);
    request.add_target(target.name());
    return call("RunStep", request);
  }
  RawReply read(const std::string& session) const {
    wire::RunStepRequest request;
    request.set_session_handle(session);
    request.add_fetch(Output(model_.count).name());
    return call("RunStep", request);
  }
  static float value(const RawReply& reply) {
    const auto response = reply.as<wire::RunStepResponse>();
    EXPECT_EQ(response.tensor_size(), 1) << reply.text;
    return response.tensor_size() == 1 ? from_proto(response.tensor(0).tensor()).item<float>() : -1;
  }

  LoopbackCluster cluster_{{{"ps", 1}, {"worker", 1}}};
  CounterModel model_{"/job:ps/task:0"};
  const RawChannel channel_{cluster_.target("worker", 0).substr(sizeof("grpc://") - 1)};
};

TEST_F(ServerWireTest, AClientTrainsOnAPsThroughAWorker) {  // MA-1, SS-1
  const std::string session = create();
  EXPECT_THAT(session, MatchesRegex("[0-9a-f]{16}"));
  const RawReply early = read(session);
  EXPECT_EQ(early.code, kFailedPrecondition);
  EXPECT_THAT(early.text, HasSubstr("Attempting to use uninitialized value count"));
  EXPECT_EQ(run(session, model_.init).code, 0);
  EXPECT_EQ(run(session, model_.add).code, 0);
  EXPECT_EQ(value(read(session)), 1);
  const auto other = new_session(cluster_.target("ps", 0), model_.graph);
  EXPECT_EQ(model_.value(*other), 1) << "the ps has the variable, for all";
  wire::CloseSessionRequest close;
  close.set_session_handle(session);
  EXPECT_EQ(call("CloseSession", close).code, 0);
  const RawReply late = read(session);
  EXPECT_EQ(late.code, kAborted);
  EXPECT_THAT(late.text, HasSubstr("is not found."));
}

TEST_F(ServerWireTest, ItsGraphGrowsByVersions) {  // SS-7, SS-10
  const std::string session = create();
  EXPECT_EQ(run(session, model_.init).code, 0);
  const int known = to_graph_def(model_.graph).node_size();
  const Output doubled = ops::add(model_.scope, model_.count, 1.0);
  wire::ExtendSessionRequest request;
  request.set_session_handle(session);
  *request.mutable_graph_def() = to_graph_def(model_.graph);
  request.mutable_graph_def()->mutable_node()->DeleteSubrange(0, known);
  const RawReply grown = call("ExtendSession", request);
  ASSERT_EQ(grown.code, 0) << grown.text;
  EXPECT_EQ(grown.as<wire::ExtendSessionResponse>().new_graph_version(), 1);
  const RawReply again = call("ExtendSession", request);
  EXPECT_EQ(again.code, kAborted);
  EXPECT_THAT(again.text, HasSubstr("Current version is 1 but caller expected 0."));
  request.set_current_graph_version(1);
  EXPECT_EQ(call("ExtendSession", request).code, kInvalidArgument) << "its nodes are there already";
  wire::RunStepRequest fetch;
  fetch.set_session_handle(session);
  fetch.add_fetch(doubled.name());
  EXPECT_EQ(value(call("RunStep", fetch)), 1);
}

TEST_F(ServerWireTest, CallablesAreMadeRunAndReleased) {  // SS-19
  const Output x = ops::placeholder(model_.scope, kFloat, {}, "x"), sum = ops::add(model_.scope, model_.count, x);
  const std::string session = create();
  EXPECT_EQ(run(session, model_.init).code, 0);
  wire::MakeCallableRequest make;
  make.set_session_handle(session);
  make.mutable_options()->add_feed(x.name());
  make.mutable_options()->add_fetch(sum.name());
  const RawReply made = call("MakeCallable", make);
  ASSERT_EQ(made.code, 0) << made.text;
  wire::RunCallableRequest request;
  request.set_session_handle(session);
  request.set_handle(made.as<wire::MakeCallableResponse>().handle());
  for (const float fed : {1.f, 2.5f}) {
    request.clear_feed();
    *request.add_feed() = to_proto(Tensor::scalar(fed));
    const RawReply reply = call("RunCallable", request);
    const auto response = reply.as<wire::RunCallableResponse>();
    ASSERT_EQ(response.fetch_size(), 1) << reply.text;
    EXPECT_EQ(from_proto(response.fetch(0)).item<float>(), fed);
  }
  wire::ReleaseCallableRequest release;
  release.set_session_handle(session);
  release.set_handle(request.handle());
  EXPECT_EQ(call("ReleaseCallable", release).code, 0);
  const RawReply late = call("RunCallable", request);
  EXPECT_EQ(late.code, kInvalidArgument);
  EXPECT_THAT(late.text, HasSubstr("Attempted to run callable after handle was released"));
}

TEST_F(ServerWireTest, NamesOfAGraphAreCheckedFirst) {  // SS-12
  wire::CreateSessionRequest request;
  request.mutable_graph_def()->add_node()->set_name("a b");
  request.mutable_graph_def()->mutable_node(0)->set_op("NoOp");
  const RawReply reply = call("CreateSession", request);
  EXPECT_EQ(reply.code, kInvalidArgument);
  EXPECT_THAT(reply.text, HasSubstr("Illegal op name"));
}

TEST_F(ServerWireTest, CallsOfAnUnknownSessionAreAborted) {  // MA-11
  wire::CloseSessionRequest close;
  close.set_session_handle("0123");
  const RawReply closed = call("CloseSession", close), ran = run("0123", model_.add);
  EXPECT_EQ(closed.code, kAborted);
  EXPECT_EQ(closed.text, "Session 0123 is not found. Possibly, this master has restarted.");
  EXPECT_EQ(ran.code, kAborted);
  EXPECT_EQ(ran.text, "Session 0123 is not found.");
}

TEST_F(ServerWireTest, TheDevicesOfAllTasksAreListed) {  // MA-5, unlike WK-1
  wire::ListDevicesRequest request;
  const RawReply reply = call("ListDevices", request);
  ASSERT_EQ(reply.code, 0) << reply.text;
  const auto devices = reply.as<wire::ListDevicesResponse>();
  ASSERT_EQ(devices.local_device_size(), 1);
  EXPECT_EQ(devices.local_device(0).name(), "/job:worker/replica:0/task:0/device:CPU:0");
  ASSERT_EQ(devices.remote_device_size(), 1);
  EXPECT_EQ(devices.remote_device(0).name(), "/job:ps/replica:0/task:0/device:CPU:0");
  request.set_session_handle(create());
  EXPECT_EQ(call("ListDevices", request).as<wire::ListDevicesResponse>().local_device_size(), 2) << "as TensorFlow";
  const RawReply own = channel_.call("/tensorflow.WorkerService/GetStatus", wire::GetStatusRequest());
  ASSERT_EQ(own.code, 0) << own.text;
  const auto status = own.as<wire::GetStatusResponse>();
  ASSERT_EQ(status.device_attributes_size(), 1);
  EXPECT_EQ(status.device_attributes(0).incarnation(), devices.local_device(0).incarnation());
}

TEST_F(ServerWireTest, AResetEndsSessionsAndEmptiesAllTasks) {  // SS-3, unlike MA-13
  const std::string session = create();
  EXPECT_EQ(run(session, model_.init).code, 0);
  EXPECT_EQ(call("Reset", wire::ResetRequest()).code, 0);
  EXPECT_EQ(run(session, model_.add).code, kAborted);
  EXPECT_EQ(read(create()).code, kFailedPrecondition) << "the ps has lost it, too";
}

TEST_F(ServerWireTest, OneThatStopsAnswersNoMore) {
  const std::string session = create();
  EXPECT_EQ(run(session, model_.init).code, 0);
  cluster_.server("worker", 0).stop();
  EXPECT_EQ(read(session).code, kUnavailable);
}

}  // namespace
}  // namespace longhaul
