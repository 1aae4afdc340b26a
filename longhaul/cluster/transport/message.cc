#include "longhaul/cluster/transport/message.h"

#include <fmt/format.h>

#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/serialize.h"

namespace longhaul {

uint64_t Message::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    bytes += tensor.size_bytes();
    if (tensor.dtype() != kString) continue;
    for (const std::string& text : tensor.flat<std::string>()) bytes += sizeof(std::string) + text.size();
  }
  return bytes;
}

Message to_message(const google::protobuf::MessageLite& header, std::vector<Tensor> tensors) {
  return {proto::serialize(header), std::move(tensors)};
}

void parse_header(const std::string& header, const std::string& what, google::protobuf::Message& out) {
  if (proto::parse_within_limits(header, &out)) return;
  throw InvalidArgumentError(
      fmt::format("{}: its message of {} bytes is damaged or takes too much memory", what, header.size()));
}

}  // namespace longhaul
