#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/cluster/transport/message.h"
#include "longhaul/cluster/wire/master_state.h"

// The methods of MasterService, and what they share.
namespace longhaul {

// A call on its way.
struct ClientCall {
  std::shared_ptr<WireCall> call;
  Seconds deadline{0};  // of the client; 0: none
  // The client will not see the answer: it has gone, or no longer waits. Ends its run.
  std::shared_ptr<Cancellation> end;
};

// Answers a call, or throws what it is to fail with.
using MasterMethod = void (*)(MasterState&, const ClientCall&);
MasterMethod master_method(const std::string& path);  // null: there is none
// Whether it ends runs of others, and so must not wait behind them.
bool ends_runs(MasterMethod method);

// The request of a call, as a message. InvalidArgumentError: damaged, or would take too much memory.
template <typename Request>
Request request_of(const ClientCall& client) {
  Request request;
  parse_header(joined(client.call->take_request()), client.call->path(), request);
  return request;
}

// AbortedError, in TensorFlow's words: there is no session of that handle.
void need_session(const WireSessions::Use& session, const std::string& handle);

// Closes sessions that are no longer found; errors are logged. Half of the time, in all, is for their runs.
inline constexpr Seconds kLongestSessionClose{20};
void close_sessions(MasterState& state, const std::vector<WireSessions::Held>& sessions,
                    Seconds timeout = kLongestSessionClose);

}  // namespace longhaul
