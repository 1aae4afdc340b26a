// Clients of MasterService: graphs, runs, callables, errors.
#include <gmock/gmock.h>

#include <atomic>

#include "longhaul/base/error.h"
#include "longhaul/cluster/wire/master_service_fixture.h"
#include "longhaul/graph/graph_def/graph_files.h"

namespace longhaul {
namespace {

namespace wire = proto::master;

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::vector<float> floats_of(const Tensor& tensor) {
  const auto values = tensor.flat<float>();
  return {values.begin(), values.end()};
}

TEST_F(MasterServiceTest, AClientMakesAssignsAndReadsAVariable) {  // MA-1
  WireClient client = this->client();
  const std::string session = client.create(variable_graph());
  EXPECT_THAT(session, MatchesRegex("[0-9a-f]{16}"));
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { client.run(session, {"Variable/read:0"}); }),
              HasSubstr("Attempting to use uninitialized value Variable"));
  EXPECT_TRUE(client.run(session, {}, {"init"}).empty());
  EXPECT_EQ(floats_of(client.run(session, {"Variable/read:0"})[0]), (std::vector<float>{1.5, 1.5}));
  client.run(session, {"Assign:0"}, {}, {{"Placeholder:0", Tensor::of<float>({2, 3})}});
  EXPECT_EQ(floats_of(client.run(session, {"Variable"})[0]), (std::vector<float>{2, 3}));
  client.close(session);
  EXPECT_EQ(service_->sessions(), 0u);
}

TEST_F(MasterServiceTest, VariablesOutliveTheSession) {  // SS-1, SS-13
  WireClient client = this->client();
  const std::string first = client.create(variable_graph());
  client.run(first, {}, {"init"});
  client.close(first);
  EXPECT_EQ(floats_of(client.run(client.create(variable_graph()), {"Variable:0"})[0]), (std::vector<float>{1.5, 1.5}));
  proto::ConfigProto isolated;
  isolated.set_isolate_session_state(true);
  const std::string other = client.create(variable_graph(), isolated);
  EXPECT_THROW(client.run(other, {"Variable:0"}), FailedPreconditionError);
}

TEST_F(MasterServiceTest, AnExtensionNamesTheVersionOnWhichItIsBased) {  // SS-10
  WireClient client = this->client();
  const std::string session = client.create({});
  EXPECT_EQ(client.extend(session, variable_graph(), 0), 1);
  client.run(session, {}, {"init"});
  const proto::GraphDef more = parse_graph_def("node { name: 'more' op: 'Identity' input: 'Variable/read' }");
  EXPECT_THAT(error_of<AbortedError>([&] { client.extend(session, more, 0); }),
              HasSubstr("Current version is 1 but caller expected 0."));
  EXPECT_THAT(refusal_of([&] { client.extend(session, variable_graph(), 1); }),
              HasSubstr("created by a previous call"));
  EXPECT_EQ(client.extend(session, more, 1), 2);
  EXPECT_EQ(floats_of(client.run(session, {"more:0"})[0]), (std::vector<float>{1.5, 1.5}));
}

TEST_F(MasterServiceTest, OfManyExtensionsOfOneVersionOneSucceeds) {  // SS-10
  WireClient client = this->client();
  const std::string session = client.create({});
  std::vector<std::shared_ptr<FakeWireCall>> calls;
  for (int i = 0; i < 20; ++i) {
    wire::ExtendSessionRequest request;
    request.set_session_handle(session);
    request.mutable_graph_def()->add_node()->set_name("n" + std::to_string(i));
    request.mutable_graph_def()->mutable_node(0)->set_op("NoOp");
    calls.push_back(client.start("ExtendSession", request));
  }
  int succeeded = 0;
  for (const auto& call : calls) {
    ASSERT_TRUE(call->wait());
    succeeded += coded_error_of([&] { call->answer(); }).empty() ? 1 : 0;
  }
  EXPECT_EQ(succeeded, 1);
}

TEST_F(MasterServiceTest, ResultsComeInTheOrderOfTheFetches) {  // unlike SS-11
  WireClient client = this->client();
  const std::string session = client.create(variable_graph());
  client.run(session, {}, {"init"});
  const auto values = client.run(session, {"Placeholder:0", "Variable:0", "Placeholder:0"}, {},
                                 {{"Placeholder:0", Tensor::of<float>({7, 8})}});
  EXPECT_EQ(floats_of(values.at(0)), (std::vector<float>{7, 8}));
  EXPECT_EQ(floats_of(values.at(1)), (std::vector<float>{1.5, 1.5}));
  EXPECT_EQ(floats_of(values.at(2)), (std::vector<float>{7, 8}));
  EXPECT_THAT(refusal_of([&] {
                client.run(session, {"Placeholder:0"}, {},
                           {{"Placeholder:0", Tensor::of<float>({7, 8})}, {"Placeholder", Tensor::of<float>({7, 8})}});
              }),
              HasSubstr("Duplicated feeds: Placeholder"));
  EXPECT_THROW(client.run(session, {"there_is_none:0"}), NotFoundError);
}

TEST_F(MasterServiceTest, AnErrorTravelsWholeInTheBodyIfTheClientSaysSo) {  // SS-20
  WireClient client = this->client();
  proto::GraphDef graph = variable_graph();
  graph.mutable_node()->DeleteSubrange(2, graph.node_size() - 2);
  const std::string name(100'000, 'v');
  graph.mutable_node(1)->set_name(name);
  const std::string session = client.create(graph);
  wire::RunStepRequest request = WireClient::run_request(session, {name + ":0"}, {});
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { client.run(request); }), HasSubstr(name));
  request.set_store_errors_in_response_body(true);
  const auto response = client.call<wire::RunStepResponse>("RunStep", request);
  EXPECT_EQ(response.status_code(), proto::error::FAILED_PRECONDITION);
  EXPECT_THAT(response.status_error_message(), HasSubstr(name));
  request.set_session_handle("gone");
  EXPECT_EQ(client.call<wire::RunStepResponse>("RunStep", request).status_code(), proto::error::ABORTED);
}

TEST_F(MasterServiceTest, ARunThatComesTwiceIsMadeOnce) {  // unlike MA-10
  WireClient client = this->client();
  const QueueGraph graph;
  const std::string session = client.create(graph.graph_def);
  const auto put = [&](float value, int64_t id) {
    auto request = WireClient::run_request(session, {}, {graph.enqueue}, {{"value:0", Tensor::scalar(value)}});
    request.set_request_id(id);
    client.run(request);
  };
  put(1, -77);
  put(1, -77);
  put(2, 5);
  auto take = WireClient::run_request(session, {graph.dequeue}, {});
  take.set_request_id(6);
  EXPECT_EQ(client.run(take)[0].item<float>(), 1);
  EXPECT_EQ(client.run(take)[0].item<float>(), 1);
  take.set_request_id(7);
  EXPECT_EQ(client.run(take)[0].item<float>(), 2);
}

TEST_F(MasterServiceTest, CallablesAreMadeRunAndReleased) {  // SS-19
  WireClient client = this->client();
  const std::string session = client.create(variable_graph());
  wire::MakeCallableRequest make;
  make.set_session_handle(session);
  make.mutable_options()->add_feed("Placeholder:0");
  make.mutable_options()->add_fetch("Assign:0");
  wire::RunCallableRequest run;
  run.set_session_handle(session);
  EXPECT_THAT(refusal_of([&] { client.call<wire::RunCallableResponse>("RunCallable", run); }),
              HasSubstr("No such callable handle: 0"));
  run.set_handle(client.call<wire::MakeCallableResponse>("MakeCallable", make).handle());
  EXPECT_EQ(run.handle(), 0);
  for (float i = 0; i < 25; ++i) {
    run.clear_feed();
    *run.add_feed() = to_proto(Tensor::of<float>({i, -i}));
    const auto response = client.call<wire::RunCallableResponse>("RunCallable", run);
    EXPECT_EQ(floats_of(from_proto(response.fetch(0))), (std::vector<float>{i, -i}));
  }
  run.clear_feed();
  EXPECT_THROW(client.call<wire::RunCallableResponse>("RunCallable", run), InvalidArgumentError);
  wire::ReleaseCallableRequest release;
  release.set_session_handle(session);
  client.call<wire::ReleaseCallableResponse>("ReleaseCallable", release);
  EXPECT_THAT(refusal_of([&] { client.call<wire::RunCallableResponse>("RunCallable", run); }),
              HasSubstr("Attempted to run callable after handle was released: 0"));
  (*make.mutable_options()->mutable_feed_devices())["Placeholder:0"] = "/cpu:0";
  EXPECT_THROW(client.call<wire::MakeCallableResponse>("MakeCallable", make), UnimplementedError);
  make.mutable_options()->clear_feed_devices();
  make.mutable_options()->add_fetch("there_is_none:0");
  EXPECT_THROW(client.call<wire::MakeCallableResponse>("MakeCallable", make), NotFoundError);
}

TEST_F(MasterServiceTest, OptionsThatNothingHeedsAreRefusedByName) {  // unlike MA-16
  WireClient client = this->client();
  proto::ConfigProto config;
  config.set_use_per_session_threads(true);
  EXPECT_THAT(error_of<UnimplementedError>([&] { client.create({}, config); }),
              HasSubstr("ConfigProto.use_per_session_threads"));
  wire::ResetRequest reset;
  reset.add_device_filters("/job:ps");
  EXPECT_THAT(error_of<UnimplementedError>([&] { client.call<wire::ResetResponse>("Reset", reset); }),
              HasSubstr("device_filters"));
  EXPECT_THROW(client.call<wire::PartialRunSetupResponse>("PartialRunSetup", wire::PartialRunSetupRequest()),
               UnimplementedError);
  wire::RunStepRequest run = WireClient::run_request(client.create({}), {}, {});
  run.set_partial_run_handle("partial");
  EXPECT_THROW(client.run(run), UnimplementedError);
}

TEST_F(MasterServiceTest, WhatTheSessionLeavesOutComesFromTheServersConfig) {  // unlike SE-10
  MasterServiceOptions with_default = options();
  with_default.default_config.set_isolate_session_state(true);
  WireClient client = this->client(with_default);
  const std::string isolated = client.create(variable_graph());
  client.run(isolated, {}, {"init"});
  EXPECT_THROW(client.run(client.create(variable_graph()), {"Variable:0"}), FailedPreconditionError);
}

TEST_F(MasterServiceTest, DevicesAreTheMastersOwnAndOthers) {  // MA-5
  WireClient client = this->client();
  wire::ListDevicesRequest request;
  auto devices = client.call<wire::ListDevicesResponse>("ListDevices", request);
  ASSERT_EQ(devices.local_device_size(), 1);
  EXPECT_EQ(devices.local_device(0).name(), "/job:local0/replica:0/task:0/device:CPU:0");
  EXPECT_NE(devices.local_device(0).incarnation(), 0u);
  ASSERT_EQ(devices.remote_device_size(), 1);
  EXPECT_EQ(devices.remote_device(0).incarnation(), 7u);
  request.set_session_handle(client.create({}));
  devices = client.call<wire::ListDevicesResponse>("ListDevices", request);
  EXPECT_EQ(devices.local_device_size(), 1);
  EXPECT_EQ(devices.remote_device_size(), 0);
  request.set_session_handle("none");
  EXPECT_THAT(refusal_of([&] { client.call<wire::ListDevicesResponse>("ListDevices", request); }),
              HasSubstr("Session none is not found. Possibly, this master has restarted."));
}

TEST_F(MasterServiceTest, OfTheWorkersCallsOnlyTheStatusIsServed) {
  WireClient client = this->client();
  const auto status =
      client.call<wire::GetStatusResponse>("/tensorflow.WorkerService/GetStatus", wire::GetStatusRequest());
  ASSERT_EQ(status.device_attributes_size(), 1);
  EXPECT_EQ(status.device_attributes(0).device_type(), "CPU");
  for (const char* path : {"/tensorflow.WorkerService/RunGraph", "/tensorflow.MasterService/Nothing", "/"}) {
    EXPECT_THROW(client.call<wire::GetStatusResponse>(path, wire::GetStatusRequest()), UnimplementedError) << path;
  }
}

TEST_F(MasterServiceTest, ARequestThatIsNoMessageIsRefused) {
  WireClient client = this->client();
  for (const char* method : {"CreateSession", "ExtendSession", "RunStep", "CloseSession", "ListDevices", "Reset",
                             "MakeCallable", "RunCallable", "ReleaseCallable"}) {
    const auto call = std::make_shared<FakeWireCall>(MasterService::kPrefix + std::string(method),
                                                     Slices{Slice{"\x0a\x7f", nullptr}});
    service_->handle(call);
    ASSERT_TRUE(call->wait());
    EXPECT_THROW(call->answer(), InvalidArgumentError) << method;
  }
}

}  // namespace
}  // namespace longhaul
