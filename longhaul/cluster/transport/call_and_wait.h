#pragma once

#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

// Calls and waits for the reply, which it returns. Not for handlers and callbacks, which may not wait. `limits` bounds
// the wait; its deadline is the call's. Without a deadline the call ends as Transport promises: a method that is
// answered late, such as Watch, then ends with its peer.
//
// Throws the peer's error, which begins with "From TASK:" and a line break, or
//   - UnavailableError, DeadlineExceededError: "task /job:ps/replica:0/task:1 (10.0.0.3:2222) has not answered RunPart
//     for 12 s"
//   - CancelledError: limits.cancellation
//   - AbortedError: another process of the task answers than request.incarnation
Message call_and_wait(Transport& transport, CallRequest request, const WaitLimits& limits = {});

}  // namespace longhaul
