#pragma once

#include <functional>
#include <memory>

#include "longhaul/cluster/transport/incoming_call.h"
#include "longhaul/cluster/transport/outgoing_call.h"
#include "longhaul/grpc/transport/peer_line.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {

// Hands a call to the task's own handler: as CallServer::dispatch().
using LocalDispatch = std::function<std::shared_ptr<IncomingCall>(const proto::CallHeader& header, Message request,
                                                                  IncomingCall::Respond respond)>;

// A call of a task to itself: nothing is encoded or copied. Handler and callback run on threads of gRPC's, as those of
// other calls do; each of both is counted in `calls` meanwhile.
void start_local_call(std::shared_ptr<OutgoingCall> call, proto::CallHeader header, Message message,
                      LocalDispatch dispatch, std::shared_ptr<CallsInGrpc> calls, Clock& clock);

}  // namespace longhaul
