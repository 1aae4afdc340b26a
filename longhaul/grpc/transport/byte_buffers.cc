#include "longhaul/grpc/transport/byte_buffers.h"

#include <grpcpp/support/byte_buffer.h>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

using Owner = std::shared_ptr<const void>;

grpc::Slice borrowed(const Slice& slice) {
  const auto let_go = [](void* owner) { delete static_cast<Owner*>(owner); };
  // gRPC's interface asks for memory that may be written, but only reads what is sent.
  return grpc::Slice(const_cast<char*>(slice.bytes.data()), slice.bytes.size(), let_go, new Owner(slice.owner));
}

}  // namespace

grpc::ByteBuffer to_byte_buffer(const Slices& slices) {
  std::vector<grpc::Slice> pieces;
  pieces.reserve(slices.size());
  for (const Slice& slice : slices) pieces.push_back(borrowed(slice));
  return grpc::ByteBuffer(pieces.data(), pieces.size());
}

Slices to_slices(const grpc::ByteBuffer& buffer) {
  // A short slice has its bytes within itself, so the views are of the pieces where they stay.
  const auto pieces = std::make_shared<std::vector<grpc::Slice>>();
  Slices slices;
  if (!buffer.Valid()) return slices;
  if (!buffer.Dump(pieces.get()).ok()) throw InternalError("gRPC cannot read a message that it has received");
  for (const grpc::Slice& piece : *pieces) {
    slices.push_back({{reinterpret_cast<const char*>(piece.begin()), piece.size()}, pieces});
  }
  return slices;
}

}  // namespace longhaul
