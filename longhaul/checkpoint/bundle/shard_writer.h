#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "longhaul/io/files/file.h"
#include "longhaul/io/files/rate_limit.h"
#include "longhaul/proto/tensor_bundle.pb.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A tensor whose elements come one piece after the other, so that it is never in memory as a whole.
struct TensorInPieces {
  DType dtype = kInvalid;
  Shape shape{};
  // The elements that follow those of the calls before, at least one; not called for an empty tensor. All strings of a
  // tensor come as one piece.
  std::function<Tensor()> next{};
};

// Writes tensors to a data file of a checkpoint, one after the other, and returns what the index says of each: all of
// its entry but the number of the data file. For whoever writes the index, in this process or elsewhere. A tensor of at
// least bundle_format::kLargeTensor bytes begins at a multiple of the alignment.
//
// One thread at a time may call. Errors: those of the file.
class ShardWriter {
 public:
  // Both must outlive it.
  ShardWriter(WritableFile& file, RateLimit& limit) : file_(file), limit_(limit) {}

  // The tensor's bytes may be on their way to the disk until the file is synced: the file keeps a handle to them.
  proto::BundleEntryProto write(const Tensor& tensor);
  // InternalError: a piece has another dtype, is empty, or has more elements than are missing.
  proto::BundleEntryProto write(const TensorInPieces& tensor);

  uint64_t bytes() const { return offset_; }  // so far

  // Where a tensor of that size begins that comes after `offset` bytes.
  static uint64_t offset_for(uint64_t size, uint64_t offset);

 private:
  void append(std::string_view bytes, const std::shared_ptr<const void>& owner = nullptr);
  void pad_for(uint64_t size);

  WritableFile& file_;
  RateLimit& limit_;
  uint64_t offset_ = 0;
};

}  // namespace longhaul
