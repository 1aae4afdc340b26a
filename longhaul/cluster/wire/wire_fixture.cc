#include "longhaul/cluster/wire/wire_fixture.h"

#include "longhaul/base/clock.h"
#include "longhaul/cluster/wire/run_messages.h"
#include "longhaul/graph/graph_def/graph_def.h"

namespace longhaul {

void FakeWireCall::fail(const Error& error) {
  try {
    throw_error(error.code(), error.what());
  } catch (...) {
    end({}, std::current_exception());
  }
}

void FakeWireCall::on_gone(std::function<void()> gone) {
  {
    MutexLock lock(mutex_);
    if (has_ended_) return;
    if (!has_gone_) {
      gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void FakeWireCall::go() {
  std::function<void()> gone;
  {
    MutexLock lock(mutex_);
    has_gone_ = true;
    if (!has_ended_) gone = std::move(gone_);
  }
  if (gone) gone();
}

bool FakeWireCall::has_ended() {
  MutexLock lock(mutex_);
  return has_ended_;
}

bool FakeWireCall::wait(Seconds at_most) {
  Clock& clock = Clock::real();
  const Seconds end = clock.now() + at_most;
  MutexLock lock(mutex_);
  while (!has_ended_ && clock.now() < end) ended_.wait_for(mutex_, end - clock.now());  // wait: for end()
  return has_ended_;
}

std::string FakeWireCall::answer() {
  MutexLock lock(mutex_);
  if (!has_ended_) throw InternalError(path_ + " was not answered");
  if (error_ != nullptr) std::rethrow_exception(error_);
  return joined(reply_);
}

void FakeWireCall::end(Slices message, std::exception_ptr error) {
  MutexLock lock(mutex_);
  if (std::exchange(has_ended_, true)) return;
  reply_ = std::move(message);
  error_ = std::move(error);
  ended_.notify_all();
}

std::shared_ptr<FakeWireCall> WireClient::start(const std::string& method, const google::protobuf::MessageLite& request,
                                                std::optional<Seconds> time_left) {
  const std::string path = method.starts_with('/') ? method : MasterService::kPrefix + method;
  auto call = std::make_shared<FakeWireCall>(path, to_slices(request), time_left);
  service_.handle(call);
  return call;
}

std::string WireClient::finished(const std::shared_ptr<FakeWireCall>& call) {
  wait(*call);
  return call->answer();
}

std::string WireClient::create(const proto::GraphDef& graph, const proto::ConfigProto& config) {
  proto::master::CreateSessionRequest request;
  *request.mutable_graph_def() = graph;
  *request.mutable_config() = config;
  return call<proto::master::CreateSessionResponse>("CreateSession", request).session_handle();
}

int64_t WireClient::extend(const std::string& session, const proto::GraphDef& graph, int64_t version) {
  proto::master::ExtendSessionRequest request;
  request.set_session_handle(session);
  *request.mutable_graph_def() = graph;
  request.set_current_graph_version(version);
  return call<proto::master::ExtendSessionResponse>("ExtendSession", request).new_graph_version();
}

proto::master::RunStepRequest WireClient::run_request(const std::string& session,
                                                      const std::vector<std::string>& fetches,
                                                      const std::vector<std::string>& targets, const Feeding& feeds) {
  proto::master::RunStepRequest request;
  request.set_session_handle(session);
  for (const std::string& name : fetches) request.add_fetch(name);
  for (const std::string& name : targets) request.add_target(name);
  for (const auto& [name, value] : feeds) {
    proto::NamedTensorProto* feed = request.add_feed();
    feed->set_name(name);
    *feed->mutable_tensor() = to_proto(value);
  }
  return request;
}

std::vector<Tensor> WireClient::run(const std::string& session, const std::vector<std::string>& fetches,
                                    const std::vector<std::string>& targets, const Feeding& feeds) {
  return run(run_request(session, fetches, targets, feeds));
}

std::vector<Tensor> WireClient::run(const proto::master::RunStepRequest& request) {
  const auto response = call<proto::master::RunStepResponse>("RunStep", request);
  std::vector<Tensor> values;
  for (int i = 0; i < response.tensor_size(); ++i) {
    if (response.tensor(i).name() != request.fetch(i)) throw InternalError("the answer has another order");
    values.push_back(from_proto(response.tensor(i).tensor()));
  }
  return values;
}

void WireClient::close(const std::string& session) {
  proto::master::CloseSessionRequest request;
  request.set_session_handle(session);
  call<proto::master::CloseSessionResponse>("CloseSession", request);
}

void WireClient::reset(const std::vector<std::string>& containers) {
  proto::master::ResetRequest request;
  for (const std::string& container : containers) request.add_container(container);
  call<proto::master::ResetResponse>("Reset", request);
}

proto::GraphDef variable_graph(const std::string& device) {
  proto::GraphDef graph = parse_graph_def(R"(
    node { name: "Variable/initial_value" op: "Const"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1.5 } } } }
    node { name: "Variable" op: "VariableV2"
      attr { key: "container" value { s: "" } }
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 2 } } } }
      attr { key: "shared_name" value { s: "" } } }
    node { name: "Variable/Assign" op: "Assign" input: "Variable" input: "Variable/initial_value"
      attr { key: "T" value { type: DT_FLOAT } }
      attr { key: "_class" value { list { s: "loc:@Variable" } } }
      attr { key: "use_locking" value { b: true } }
      attr { key: "validate_shape" value { b: true } } }
    node { name: "Variable/read" op: "Identity" input: "Variable"
      attr { key: "T" value { type: DT_FLOAT } }
      attr { key: "_class" value { list { s: "loc:@Variable" } } } }
    node { name: "init" op: "NoOp" input: "^Variable/Assign" }
    node { name: "Placeholder" op: "Placeholder"
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "Assign" op: "Assign" input: "Variable" input: "Placeholder"
      attr { key: "T" value { type: DT_FLOAT } }
      attr { key: "_class" value { list { s: "loc:@Variable" } } }
      attr { key: "use_locking" value { b: false } }
      attr { key: "validate_shape" value { b: true } } }
    versions { producer: 134 })");
  for (proto::NodeDef& node : *graph.mutable_node()) node.set_device(device);
  return graph;
}

}  // namespace longhaul
