#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What a task tells another: a method's protobuf message as bytes, and its tensors. Handles: their bytes are
// shared until a network copies them.
struct Message {
  std::string header;
  std::vector<Tensor> tensors;

  uint64_t tensor_bytes() const;  // of numbers and of texts
};

Message to_message(const google::protobuf::MessageLite& header, std::vector<Tensor> tensors = {});

// Parses a header with the limits of proto/parsed_size.h. `what` names it in messages. InvalidArgumentError: it is
// malformed, or would take too much memory.
void parse_header(const std::string& header, const std::string& what, google::protobuf::Message& out);

template <typename Header>
Header header_of(const Message& message, const std::string& what) {
  Header header;
  parse_header(message.header, what, header);
  return header;
}

// A call to another task.
struct CallRequest {
  std::string task;                  // "/job:ps/replica:0/task:1", or an address (is_address)
  std::string method;                // "Deliver" (methods.h)
  uint64_t incarnation = 0;          // the process that is meant: another one refuses it with AbortedError. 0: any
  std::optional<Seconds> time_left;  // then the call ends with DeadlineExceededError
  Message message;
  Seconds pause{0};                  // before it is sent, for a repetition; ends with the call
  std::optional<Seconds> connect{};  // how long it waits for a connection; none: TransportLimits::connect
};

// How a call ended.
struct CallReply {
  std::exception_ptr error;  // null: it succeeded
  Message message;
  uint64_t incarnation = 0;  // of the process that answered; 0: nobody did
  bool is_broken = false;    // the line broke: nobody knows whether the peer has handled the call
};

}  // namespace longhaul
