#include "longhaul/checkpoint/bundle/shard_writer.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_format.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/string_tensor.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

// Passes the bytes on in chunks, each one's checksum taken while it is in the cache.
void write_chunks(std::string_view bytes, StoredBytes& stored, const std::function<void(std::string_view)>& append) {
  stored.size += bytes.size();
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, bundle_format::kChunk);
    stored.crc = extend_crc32c(stored.crc, piece);
    append(piece);
    bytes.remove_prefix(piece.size());
  }
}

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), tensor.size_bytes()};
}

proto::BundleEntryProto stored_entry(DType dtype, const Shape& shape, uint64_t offset, const StoredBytes& stored) {
  proto::BundleEntryProto entry = entry_of(dtype, shape);
  entry.set_offset(static_cast<int64_t>(offset));
  entry.set_size(static_cast<int64_t>(stored.size));
  entry.set_crc32c(mask_crc32c(stored.crc));
  return entry;
}

void check_piece(const TensorInPieces& tensor, const Tensor& piece, int64_t missing) {
  const bool fits = piece.dtype() == tensor.dtype && piece.num_elements() > 0 && piece.num_elements() <= missing;
  if (fits && (tensor.dtype != kString || piece.num_elements() == missing)) return;
  throw InternalError(fmt::format("a tensor {}{}, of which {} elements are missing, got a piece of {}{}",
                                  dtype_name(tensor.dtype), tensor.shape.to_string(), missing,
                                  dtype_name(piece.dtype()), piece.shape().to_string()));
}

Tensor whole(const TensorInPieces& tensor) {
  if (tensor.shape.num_elements() == 0) return Tensor(tensor.dtype, tensor.shape);
  const Tensor piece = tensor.next();
  check_piece(tensor, piece, tensor.shape.num_elements());
  return piece.reshaped(tensor.shape);
}

}  // namespace

uint64_t ShardWriter::offset_for(uint64_t size, uint64_t offset) {
  if (size < bundle_format::kLargeTensor) return offset;
  const uint64_t over = offset % bundle_format::kLargeAlignment;
  return over == 0 ? offset : offset + bundle_format::kLargeAlignment - over;
}

proto::BundleEntryProto ShardWriter::write(const Tensor& tensor) {
  pad_for(tensor.size_bytes());
  const uint64_t offset = offset_;
  StoredBytes stored;
  if (tensor.dtype() == kString) {
    stored = write_strings(tensor.flat<std::string>(), [this](std::string_view piece) { append(piece); });
  } else {
    write_chunks(bytes_of(tensor), stored, [&](std::string_view piece) { append(piece, tensor.owner()); });
  }
  return stored_entry(tensor.dtype(), tensor.shape(), offset, stored);
}

// The pieces are copied: each is let go before the next one comes.
proto::BundleEntryProto ShardWriter::write(const TensorInPieces& tensor) {
  if (tensor.dtype == kString) return write(whole(tensor));
  int64_t missing = tensor.shape.num_elements();
  pad_for(static_cast<uint64_t>(missing) * dtype_size(tensor.dtype));
  const uint64_t offset = offset_;
  StoredBytes stored;
  while (missing > 0) {
    const Tensor piece = tensor.next();
    check_piece(tensor, piece, missing);
    write_chunks(bytes_of(piece), stored, [this](std::string_view bytes) { append(bytes); });
    missing -= piece.num_elements();
  }
  return stored_entry(tensor.dtype, tensor.shape, offset, stored);
}

// With an owner, the file may keep it and write the bytes later.
void ShardWriter::append(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  limit_.take(bytes.size());
  if (owner) {
    file_.append_borrowed(bytes, owner);
  } else {
    file_.append(bytes);
  }
  offset_ += bytes.size();
}

void ShardWriter::pad_for(uint64_t size) {
  const uint64_t gap = offset_for(size, offset_) - offset_;
  if (gap != 0) append(std::string(gap, '\0'));
}

}  // namespace longhaul
