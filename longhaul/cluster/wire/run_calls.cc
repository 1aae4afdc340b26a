#include "longhaul/cluster/wire/run_calls.h"

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/cluster/wire/run_messages.h"
#include "longhaul/session/config_proto.h"

namespace longhaul {
namespace {

namespace wire = proto::master;

[[noreturn]] void refuse_partial_runs() {
  throw UnimplementedError(
      "partial runs (PartialRunSetup) are not supported: feed and fetch everything in one RunStep");
}

std::vector<std::string> texts_of(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// A run on its way.
struct RunRequest {
  const std::string& handle;
  int64_t request_id;
  WireRun run;
  const std::vector<Tensor>& values;
};

// What the run's options, the session's, and the client leave it. 0: no limit.
Seconds timeout_of_run(const RunRequest& request, const WireSessions::Use& session, Seconds left) {
  const Seconds own = request.run.options.timeout;
  const Seconds timeout = own.count() > 0 ? own : session->operation_timeout();
  if (left.count() == 0) return timeout;
  return timeout.count() > 0 ? std::min(timeout, left) : left;
}

// `metadata` stays as it is if the answer was given before.
std::vector<Tensor> make_run(MasterState& state, const ClientCall& client, RunRequest request,
                             proto::RunMetadata* metadata) {
  const WireSessions::Use session(state.sessions, request.handle);
  need_session(session, request.handle);
  const Seconds now = state.options.clock->now();
  const Seconds left = client.deadline.count() != 0 ? std::max(Seconds{0.001}, client.deadline - now) : Seconds{0};
  const Seconds timeout = timeout_of_run(request, session, left);
  request.run.options.timeout = timeout;
  const WaitLimits limits{.deadline = timeout.count() > 0 ? now + timeout : Seconds{0},
                          .cancellation = client.end.get()};
  return state.once.call(request.handle, static_cast<uint64_t>(request.request_id), limits, [&](Cancellation* end) {
    request.run.options.cancellation = end;
    return session->run(request.run, request.values, metadata);
  });
}

const proto::RunMetadata* unless_empty(const proto::RunMetadata& metadata) {
  return metadata.ByteSizeLong() > 0 ? &metadata : nullptr;
}

Slices reply_of_step(MasterState& state, const ClientCall& client, const RunStepCall& call) {
  const wire::RunStepRequest& message = call.message;
  if (!message.partial_run_handle().empty()) refuse_partial_runs();
  const WireRun run{call.feeds, texts_of(message.fetch()), texts_of(message.target()),
                    run_options_of(message.options())};
  proto::RunMetadata metadata;
  const std::vector<Tensor> values =
      make_run(state, client, {message.session_handle(), message.request_id(), run, call.values}, &metadata);
  return write_run_step(run.fetches, values, unless_empty(metadata));
}

wire::RunStepResponse error_in_body(const std::exception_ptr& error) {
  wire::RunStepResponse response;
  response.set_status_code(static_cast<proto::error::Code>(code_of(error)));
  response.set_status_error_message(message_of(error));
  return response;
}

WireRun callable_of(const proto::CallableOptions& options) {
  if (!options.feed_devices().empty() || !options.fetch_devices().empty())
    throw UnimplementedError(
        "CallableOptions.feed_devices and fetch_devices: values of a callable travel with the call; leave them out");
  if (options.tensor_connection_size() > 0)
    throw UnimplementedError("CallableOptions.tensor_connection: fed tensors have their own values; leave it out");
  return {texts_of(options.feed()), texts_of(options.fetch()), texts_of(options.target()),
          run_options_of(options.run_options())};
}

}  // namespace

void run_step(MasterState& state, const ClientCall& client) {
  const RunStepCall call = read_run_step(client.call->take_request());
  try {
    client.call->reply(reply_of_step(state, client, call));
  } catch (...) {
    if (!call.message.store_errors_in_response_body()) throw;
    client.call->reply(to_slices(error_in_body(std::current_exception())));
  }
}

void make_callable(MasterState& state, const ClientCall& client) {
  const auto request = request_of<wire::MakeCallableRequest>(client);
  const WireSessions::Use session(state.sessions, request.session_handle());
  need_session(session, request.session_handle());
  const std::vector<Tensor> handle = state.once.call(
      request.session_handle(), static_cast<uint64_t>(request.request_id()),
      {.deadline = client.deadline, .cancellation = client.end.get()}, [&](Cancellation*) {
        return std::vector<Tensor>{Tensor::scalar(session->make_callable(callable_of(request.options())))};
      });
  wire::MakeCallableResponse response;
  response.set_handle(handle[0].item<int64_t>());
  client.call->reply(to_slices(response));
}

void run_callable(MasterState& state, const ClientCall& client) {
  const RunCallableCall call = read_run_callable(client.call->take_request());
  const std::string& handle = call.message.session_handle();
  const WireSessions::Use session(state.sessions, handle);
  need_session(session, handle);
  const std::shared_ptr<const WireRun> run = session->callable(call.message.handle());
  proto::RunMetadata metadata;
  const std::vector<Tensor> values =
      make_run(state, client, {handle, call.message.request_id(), *run, call.values}, &metadata);
  client.call->reply(write_run_callable(values, unless_empty(metadata)));
}

void release_callable(MasterState& state, const ClientCall& client) {
  const auto request = request_of<wire::ReleaseCallableRequest>(client);
  const WireSessions::Use session(state.sessions, request.session_handle());
  need_session(session, request.session_handle());
  session->release_callable(request.handle());
  client.call->reply(to_slices(wire::ReleaseCallableResponse()));
}

void refuse_partial_run(MasterState&, const ClientCall&) {
  refuse_partial_runs();
}

}  // namespace longhaul
