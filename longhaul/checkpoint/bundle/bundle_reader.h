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
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Reads a checkpoint of the V2 format (docs/formats/tensor_bundle.md), written by TensorFlow or by BundleWriter: any
// number of data files, either byte order, strings, tensors stored in slices. Verifies the checksums of everything that
// it reads.
//
//   BundleReader reader(FileSystem::real(), "runs/demo/model.ckpt-100");
//   for (const std::string& name : reader.keys()) use(name, reader.read(name));
//   const std::vector<BundleReader::Wanted> wanted{{.name = "w"}, {.name = "b"}};
//   const std::vector<Tensor> model = reader.read_many(wanted);  // at the disk's speed
//
// NotFoundError: no such checkpoint, or no such tensor. DataLossError: the checkpoint is damaged; try the previous one.
// InvalidArgumentError and UnimplementedError: the checkpoint is intact, but not supported. A size in a file is trusted
// only after it was checked against the size of the data file and against the dtype and shape.
//
// Any thread may call any method; tensors can be read in parallel.
class BundleReader {
 public:
  // Reads the index; data files are opened when needed. A checkpoint that is being replaced is read from where it was
  // set aside. UnimplementedError: `prefix` is a V1 checkpoint.
  BundleReader(FileSystem& files, const std::string& prefix);

  using Entry = BundleEntry;

  // The names of the tensors, sorted.
  std::vector<std::string> keys() const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Entry* find(std::string_view name) const;  // nullptr: no such tensor. Valid as long as the reader.
  const Entry& entry(std::string_view name) const;

  Tensor read(std::string_view name) const;

  // A part of the tensor, however it is stored.
  Tensor read_slice(std::string_view name, const TensorSlice& slice) const;

  struct Wanted {
    std::string name{};
    std::optional<TensorSlice> slice{};  // nullopt: the whole tensor
  };
  // Allocates the memory for a tensor. Called once the size is known to match the bytes in the file. Page-aligned
  // memory is read into directly.
  using MakeTensor = std::function<Tensor(DType dtype, const Shape& shape)>;

  // Returns many tensors, in the order of `wanted`. Large ones are read in parallel, bypassing the kernel's cache,
  // directly into the memory that `make` returns (without `make`: Tensor's own), while their checksums are computed.
  // Throws the error of the first tensor that cannot be read.
  std::vector<Tensor> read_many(std::span<const Wanted> wanted, const MakeTensor& make = {}) const;

  // Reads and checks everything in the same way, with bounded memory. Returns a message for each damaged tensor; empty:
  // the checkpoint is intact. Tensors of dtypes that the library does not support are verified too.
  // ResourceExhaustedError, UnavailableError, PermissionDeniedError: this process cannot read the checkpoint at the
  // moment. `on_bytes` is called with the number of bytes of each part that was read, on this thread.
  std::vector<std::string> verify(const std::function<void(uint64_t bytes)>& on_bytes = {}) const;

  uint64_t total_bytes() const;  // of all tensors in the data files
  int num_shards() const { return index_.num_shards(); }
  const std::string& prefix() const { return index_.prefix(); }
  const BundleIndex& index() const { return index_; }

 private:
  Tensor read_one(std::string_view name, const std::optional<TensorSlice>& slice) const;
  void verify_slices(std::string_view name, const Entry& whole) const;

  const BundleIndex index_;
  const PieceReader pieces_;
};

}  // namespace longhaul
