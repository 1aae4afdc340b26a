#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"

namespace longhaul {

namespace proto {
class BundleEntryProto;
class BundleHeaderProto;
}  // namespace proto

// A checkpoint's description of a tensor.
struct BundleEntry {
  int dtype = kInvalid;  // TensorFlow's number; the library may not support the dtype (is_known_dtype)
  Shape shape;
  std::vector<TensorSlice> slices;  // how the tensor is stored; empty: in one piece
  uint64_t bytes = 0;               // in the data files, all slices together
};

// Bytes in a data file: a tensor, or a slice of one. Nothing in it has been checked yet.
struct StoredPiece {
  BundleEntry entry;
  int shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t crc = 0;  // not masked
};

// The index of a checkpoint, which the constructor reads: the tensors, and the claimed places of their bytes. Programs
// use BundleReader instead; the errors are the same. Any thread may call.
class BundleIndex {
 public:
  using Pieces = std::map<std::string, StoredPiece, std::less<>>;

  BundleIndex(FileSystem& files, const std::string& prefix);

  // By key: tensors, and slices of tensors (slice_key).
  const Pieces& pieces() const { return pieces_; }
  // NotFoundError: "Key NAME not found in checkpoint PREFIX".
  const StoredPiece& piece(std::string_view key) const;

  const std::string& prefix() const { return prefix_; }
  const std::string& committed() const { return committed_; }  // the prefix, or where it was set aside
  int num_shards() const { return num_shards_; }
  bool big_endian() const { return big_endian_; }

  // For messages: "PREFIX: tensor NAME"; for a piece, with its data file's name instead of the prefix.
  std::string where(std::string_view name) const;
  std::string where(std::string_view name, const StoredPiece& piece) const;

 private:
  std::unique_ptr<const ReadableFile> open(FileSystem& files);
  void read_header(const proto::BundleHeaderProto& header, const std::string& path);
  void add_entry(const std::string& key, const proto::BundleEntryProto& message);
  void add_up_slices();

  const std::string prefix_;
  std::string committed_;
  int num_shards_ = 0;
  bool big_endian_ = false;
  Pieces pieces_;
};

}  // namespace longhaul
