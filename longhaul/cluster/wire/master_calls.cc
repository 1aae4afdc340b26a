#include "longhaul/cluster/wire/master_calls.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "longhaul/base/deadline.h"
#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/wire/run_calls.h"
#include "longhaul/cluster/wire/run_messages.h"
#include "longhaul/session/config_proto.h"

namespace longhaul {
namespace {

namespace wire = proto::master;

std::string not_found_text(const std::string& handle, bool by_restart = false) {
  return fmt::format("Session {} is not found.{}", excerpt(handle),
                     by_restart ? " Possibly, this master has restarted." : "");
}

void create_session(MasterState& state, const ClientCall& client) {
  state.sessions.check_room();
  const auto request = request_of<wire::CreateSessionRequest>(client);
  const SessionOptions options = session_options_of(with_defaults(request.config(), state.options.default_config));
  const std::string handle =
      state.sessions.add(std::make_shared<WireSession>(request.graph_def(), options, state.options.new_session));
  if (client.end->cancelled()) {  // nobody will know its handle
    if (auto session = state.sessions.take(handle)) close_sessions(state, {{handle, session}});
    return;
  }
  wire::CreateSessionResponse response;
  response.set_session_handle(handle);
  client.call->reply(to_slices(response));
}

void extend_session(MasterState& state, const ClientCall& client) {
  const auto request = request_of<wire::ExtendSessionRequest>(client);
  const WireSessions::Use session(state.sessions, request.session_handle());
  need_session(session, request.session_handle());
  wire::ExtendSessionResponse response;
  response.set_new_graph_version(session->extend(request.graph_def(), request.current_graph_version()));
  client.call->reply(to_slices(response));
}

void close_session(MasterState& state, const ClientCall& client) {
  const auto request = request_of<wire::CloseSessionRequest>(client);
  const std::string& handle = request.session_handle();
  const std::shared_ptr<WireSession> session = state.sessions.take(handle);
  if (session == nullptr) throw AbortedError(not_found_text(handle, /*by_restart=*/true));
  close_sessions(state, {{handle, session}});
  client.call->reply(to_slices(wire::CloseSessionResponse()));
}

void add_device(const DeviceAttributes& device, proto::DeviceAttributes* to) {
  to->set_name(device.name);
  to->set_device_type(device.device_type);
  to->set_memory_limit(device.memory_limit);
  to->set_incarnation(device.incarnation);
  to->set_physical_device_desc(device.physical_device_desc);
}

void list_devices_of_session(MasterState& state, const std::string& handle, wire::ListDevicesResponse* response) {
  const WireSessions::Use session(state.sessions, handle);
  if (!session) throw InvalidArgumentError(not_found_text(handle, /*by_restart=*/true));
  for (const DeviceAttributes& device : session->list_devices()) add_device(device, response->add_local_device());
}

void list_devices_of_cluster(MasterState& state, wire::ListDevicesResponse* response) {
  std::set<std::string> own;
  for (const DeviceAttributes& device : state.options.own_devices()) {
    own.insert(device.name);
    add_device(device, response->add_local_device());
  }
  for (const DeviceAttributes& device : state.options.list_devices()) {
    if (!own.contains(device.name)) add_device(device, response->add_remote_device());
  }
}

void list_devices(MasterState& state, const ClientCall& client) {
  const auto request = request_of<wire::ListDevicesRequest>(client);
  wire::ListDevicesResponse response;
  if (request.session_handle().empty()) {
    list_devices_of_cluster(state, &response);
  } else {
    list_devices_of_session(state, request.session_handle(), &response);
  }
  client.call->reply(to_slices(response));
}

void get_status(MasterState& state, const ClientCall& client) {
  wire::GetStatusResponse response;
  for (const DeviceAttributes& device : state.options.own_devices()) {
    add_device(device, response.add_device_attributes());
  }
  client.call->reply(to_slices(response));
}

// First nobody finds the sessions any more, then the containers are emptied.
void reset(MasterState& state, const ClientCall& client) {
  const auto request = request_of<wire::ResetRequest>(client);
  if (request.device_filters_size() > 0)
    throw UnimplementedError(
        "ResetRequest.device_filters is set, but a reset concerns this server's task: ask the other servers, or leave "
        "it out");
  const auto sessions = state.sessions.take_all();
  std::exception_ptr error;
  try {
    state.options.reset({request.container().begin(), request.container().end()});
  } catch (...) {
    error = std::current_exception();
  }
  close_sessions(state, sessions);
  if (error != nullptr) std::rethrow_exception(error);
  client.call->reply(to_slices(wire::ResetResponse()));
}

}  // namespace

MasterMethod master_method(const std::string& path) {
  static const std::map<std::string, MasterMethod> methods{
      {"/tensorflow.MasterService/CreateSession", create_session},
      {"/tensorflow.MasterService/ExtendSession", extend_session},
      {"/tensorflow.MasterService/PartialRunSetup", refuse_partial_run},
      {"/tensorflow.MasterService/RunStep", run_step},
      {"/tensorflow.MasterService/CloseSession", close_session},
      {"/tensorflow.MasterService/ListDevices", list_devices},
      {"/tensorflow.MasterService/Reset", reset},
      {"/tensorflow.MasterService/MakeCallable", make_callable},
      {"/tensorflow.MasterService/RunCallable", run_callable},
      {"/tensorflow.MasterService/ReleaseCallable", release_callable},
      {"/tensorflow.WorkerService/GetStatus", get_status},
  };
  const auto found = methods.find(path);
  return found == methods.end() ? nullptr : found->second;
}

bool ends_runs(MasterMethod method) {
  return method == close_session || method == reset;
}

void need_session(const WireSessions::Use& session, const std::string& handle) {
  if (!session) throw AbortedError(not_found_text(handle));
}

void close_sessions(MasterState& state, const std::vector<WireSessions::Held>& sessions, Seconds timeout) {
  Deadline deadline(*state.options.clock);
  deadline.bring_forward(timeout);
  for (const auto& [handle, session, idle] : sessions) {
    try {
      session->close(deadline);
    } catch (const std::exception& error) {
      log_warning("session {} of a client was not closed properly: {}", handle, error.what());
    }
    state.once.forget(handle);
  }
}

}  // namespace longhaul
