#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {

// What longhaul.h installs: sessions for the targets
//   ""                  this process, without a server
//   "local"             a server of this process on 127.0.0.1, which is made at first use
//   "grpc://host:port"  that server. One of this process is used without a connection, unless the options say
//                       use_rpc_for_inprocess_master; otherwise the session's master is here all the same, and calls
//                       the server and the other tasks of its cluster
// NotFoundError: it is none of these; InvalidArgumentError: host and port are malformed; UnavailableError,
// DeadlineExceededError: nobody answers there.
std::unique_ptr<Session> new_session_on_target(const std::string& target, Graph& graph, const SessionOptions& options);

// Session::reset(): on a server, of all tasks of its cluster. Waits 10 s at most.
void reset_target(const std::string& target, const std::vector<std::string>& containers);

}  // namespace longhaul
