#pragma once

#include "longhaul/cluster/transport/slices.h"

namespace grpc {
class ByteBuffer;
}

namespace longhaul {

// The same bytes as gRPC's, and back, without a copy: each side keeps the other's memory for as long as it needs it.
grpc::ByteBuffer to_byte_buffer(const Slices& slices);
Slices to_slices(const grpc::ByteBuffer& buffer);

}  // namespace longhaul
