#pragma once

#include <cstdint>
#include <string>

#include "longhaul/io/files/file.h"
#include "longhaul/proto/cluster_service.pb.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What a task says of a value that a snapshot holds: its dtype, its shape, its size in a data file and, if asked, the
// checksum of these bytes, for which all are read.
proto::TakenValue described(const std::string& name, const Tensor& value, bool with_checksum);

// Elements of it as a vector, which shares its bytes. InvalidArgumentError: it does not have them.
Tensor piece_of(const std::string& name, const Tensor& value, int64_t first, int64_t count);

}  // namespace longhaul
