#pragma once

#include <optional>

#include "longhaul/cluster/transport/message.h"
#include "longhaul/cluster/transport/received_memory.h"
#include "longhaul/cluster/transport/slices.h"
#include "longhaul/cluster/transport/tensor_message.h"
#include "longhaul/proto/cluster_service.pb.h"

// A message on its way: a TaskFrame of proto/cluster_service.proto, encoded by hand (docs/formats/task_messages.md).
namespace longhaul {

// What a frame says besides the message; one of the two.
struct TaskFrame {
  std::optional<proto::CallHeader> call;
  std::optional<proto::ReplyHeader> reply;
  Message message;
};

// The tensors' bytes are shared, and kept. InvalidArgumentError: a tensor is not defined.
Slices write_frame(const TaskFrame& frame);

// What a peer may send: checked before memory is taken.
struct FrameLimits {
  uint64_t most_bytes = uint64_t{4} << 30;         // of the frame
  uint64_t most_header_bytes = uint64_t{1} << 30;  // of the method's message, which may be a graph
  size_t most_tensors = 1 << 16;
  NewTensor make_tensor = new_received_tensor;
};

// `from` names the sender in messages. DataLossError: its bytes are not those that were sent, as the checksum says;
// InvalidArgumentError: it was sent malformed, or is neither a call nor a reply; ResourceExhaustedError: it is above a
// limit.
TaskFrame read_frame(const Slices& slices, const std::string& from, const FrameLimits& limits = {});

}  // namespace longhaul
