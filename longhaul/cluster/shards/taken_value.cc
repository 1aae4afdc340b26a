#include "longhaul/cluster/shards/taken_value.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/same_contents.h"
#include "longhaul/checkpoint/bundle/string_tensor.h"

namespace longhaul {
namespace {

// The size of strings follows from their lengths, not their bytes.
uint64_t size_in_file(const Tensor& value) {
  return value.dtype() == kString ? write_strings(value.flat<std::string>(), [](std::string_view) {}).size
                                  : value.size_bytes();
}

}  // namespace

proto::TakenValue described(const std::string& name, const Tensor& value, bool with_checksum) {
  proto::TakenValue description;
  description.set_name(name);
  description.set_dtype(value.dtype());
  set_shape(*description.mutable_shape(), value.shape());
  if (!with_checksum) {
    description.set_stored_bytes(size_in_file(value));
    return description;
  }
  const StoredBytes stored = checksum_of(value);
  description.set_stored_bytes(stored.size);
  description.set_crc32c(stored.crc);
  return description;
}

Tensor piece_of(const std::string& name, const Tensor& value, int64_t first, int64_t count) {
  if (first < 0 || count < 1 || first >= value.num_elements() || count > value.num_elements() - first) {
    throw InvalidArgumentError(
        fmt::format("{} has {} elements, but {} from {} on were asked for", name, value.num_elements(), count, first));
  }
  const size_t size = value.dtype() == kString ? sizeof(std::string) : dtype_size(value.dtype());
  return Tensor::wrap(value.dtype(), Shape{count},
                      static_cast<const char*>(value.data()) + static_cast<size_t>(first) * size, value.owner());
}

}  // namespace longhaul
