#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_index.h"
#include "longhaul/checkpoint/bundle/piece_reader.h"
#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/io/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Reads a checkpoint of the V2 format (docs/formats/tensor_bundle.md), written by TensorFlow or by BundleWriter: any
// number of data files, either byte order, strings, tensors stored in slices. Every checksum of what is read is
// verified.
//
//   BundleReader reader(FileSystem::real(), "runs/demo/model.ckpt-100");
//   for (const std::string& name : reader.keys()) use(name, reader.read(name));
//   const std::vector<BundleReader::Wanted> wanted{{.name = "w"}, {.name = "b"}};
//   const std::vector<Tensor> model = reader.read_many(wanted);  // at the disk's speed
//
// The errors say what a caller can do. NotFoundError: no such checkpoint, or no such tensor. DataLossError: the
// checkpoint is damaged, try the one before it. InvalidArgumentError and UnimplementedError: it is whole, but not for
// us. No size that a file claims is believed before it was compared with the size of the data file and with the dtype
// and shape.
//
// Any thread may call any method; tensors can be read in parallel.
class BundleReader {
 public:
  // Reads the index; the data files are opened when needed. A checkpoint that is being replaced is found where it was
  // set aside. UnimplementedError: `prefix` is a V1 checkpoint.
  BundleReader(FileSystem& files, const std::string& prefix);

  using Entry = BundleEntry;

  // The names of the tensors, sorted.
  std::vector<std::string> keys() const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Entry* find(std::string_view name) const;  // nullptr: no such tensor. Lives as long as the reader.
  const Entry& entry(std::string_view name) const;

  Tensor read(std::string_view name) const;

  // A part of the tensor, whichever way it is stored.
  Tensor read_slice(std::string_view name, const TensorSlice& slice) const;

  struct Wanted {
    std::string name;
    std::optional<TensorSlice> slice;  // none: all of the tensor
  };
  // Makes the memory for what is read, once the size is known to be that of bytes in the file. Memory that begins at a
  // page is read into straight.
  using MakeTensor = std::function<Tensor(DType dtype, const Shape& shape)>;

  // Many tensors in the order of `wanted`: what is large is read in parallel, past the kernel's cache, straight to the
  // memory that is made for it (Tensor's own without a function), and its checksums are computed meanwhile. The
  // error of the first that cannot be read.
  std::vector<Tensor> read_many(std::span<const Wanted> wanted, const MakeTensor& make = {}) const;

  // Reads everything, in the same way and through a bounded amount of memory, and throws nothing away but the bytes:
  // the message of each tensor that is damaged. Empty: the checkpoint is whole. Dtypes that we cannot hold are verified
  // like others. ResourceExhaustedError, UnavailableError, PermissionDeniedError: it could not be read at this moment,
  // by this process.
  std::vector<std::string> verify() const;

  uint64_t total_bytes() const;  // of all tensors in the data files
  int num_shards() const { return index_.num_shards(); }
  const std::string& prefix() const { return index_.prefix(); }

 private:
  Tensor read_one(std::string_view name, const std::optional<TensorSlice>& slice) const;
  void verify_slices(std::string_view name, const Entry& whole) const;

  const BundleIndex index_;
  const PieceReader pieces_;
};

}  // namespace longhaul
