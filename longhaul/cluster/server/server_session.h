#pragma once

#include <memory>
#include <string>

#include "longhaul/cluster/master/cluster_session.h"
#include "longhaul/cluster/spec/cluster_spec.h"
#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

// A server, as sessions on it need to know it.
struct ServerTask {
  std::string task;     // "/job:worker/replica:0/task:1"
  std::string address;  // "10.0.0.3:2222", at which it is called
  ClusterSpec cluster;
  SessionOptions defaults;  // what the options of sessions leave out; its devices and threads are its own matter
};

// Asks whoever listens there, again and again while nobody does. UnavailableError: nobody has for `max_wait`;
// DeadlineExceededError, or what cancelled: `limits`. FailedPreconditionError: it is a task, but no server.
ServerTask ask_server(Transport& transport, const std::string& address, Seconds max_wait, const WaitLimits& limits);

// How long a session waits: for a task that a run names and that is not there yet.
inline constexpr Seconds kSessionWaits{600};

// A session on a server, whose own work is done there. Its master is here, and calls by the transport: the server's
// own, or a client's, which must know the addresses of all tasks of the cluster. The session keeps the transport. The
// options' cluster_def, if they have one, takes the place of the server's cluster; its tasks are called by their
// addresses.
//
// UnimplementedError: an option is set that only the server itself can be told. InvalidArgumentError: the cluster_def
// is malformed, or the server is none of its tasks, or several; or a filter is malformed.
std::unique_ptr<ClusterSession> session_on(const ServerTask& server, std::shared_ptr<Transport> transport, Graph& graph,
                                           const SessionOptions& options, Seconds max_wait = kSessionWaits);

// Both: a session on whoever listens there, for a client whose transport knows the tasks of the cluster by their names.
// Waits for the server for max_wait, or the options' operation_timeout.
std::unique_ptr<ClusterSession> new_client_session(std::shared_ptr<Transport> transport, const std::string& address,
                                                   Graph& graph, const SessionOptions& options,
                                                   Seconds max_wait = kSessionWaits);

// The limits of what makes a session, or asks for it: the options' operation_timeout.
WaitLimits limits_of(const SessionOptions& options, const Clock& clock);

// Whether both are one: "localhost" is 127.0.0.1, and ::1, but these two differ, as do 127.0.0.1 and 127.0.0.2. Other
// names are not looked up.
bool is_same_address(const std::string& one, const std::string& other);

// The names of all tasks.
std::vector<std::string> task_names(const ClusterSpec& cluster);

}  // namespace longhaul
