#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/slice.h"
#include "longhaul/io/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Reads a checkpoint of the V2 format (docs/formats/tensor_bundle.md), written by TensorFlow or by BundleWriter: any
// number of data files, either byte order, strings, tensors stored in slices. Every checksum of what is read is
// verified.
//
//   BundleReader reader(FileSystem::real(), "runs/demo/model.ckpt-100");
//   for (const std::string& name : reader.keys()) use(name, reader.read(name));
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
  ~BundleReader();

  struct Entry {
    int dtype = kInvalid;  // TensorFlow's number: perhaps of a type that we cannot read (is_known_dtype)
    Shape shape;
    std::vector<TensorSlice> slices;  // how the tensor is stored; empty: in one piece
    uint64_t bytes = 0;               // in the data files, all slices together
  };

  // The names of the tensors, sorted.
  std::vector<std::string> keys() const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Entry* find(std::string_view name) const;  // nullptr: no such tensor. Lives as long as the reader.
  const Entry& entry(std::string_view name) const;

  Tensor read(std::string_view name) const;

  // A part of the tensor, whichever way it is stored.
  Tensor read_slice(std::string_view name, const TensorSlice& slice) const;

  // Reads everything and throws nothing away but the bytes: the message of each tensor that is damaged, or that cannot
  // be read. Empty: the checkpoint is whole. Dtypes that we cannot hold are verified like others.
  std::vector<std::string> verify() const;

  uint64_t total_bytes() const;  // of all tensors in the data files
  int num_shards() const { return num_shards_; }
  const std::string& prefix() const { return prefix_; }

 private:
  // One piece of bytes in a data file.
  struct Piece {
    Entry entry;
    int shard = 0;
    int64_t offset = 0;
    int64_t size = 0;
    uint32_t crc = 0;  // not masked
  };
  using Pieces = std::map<std::string, Piece, std::less<>>;

  // A stored slice that has something in common with a wanted one.
  struct Part {
    TensorSlice box;  // with all its lengths
    const Piece* piece = nullptr;
  };

  std::unique_ptr<const ReadableFile> open_index();
  [[noreturn]] void throw_no_index() const;
  void read_index();
  void read_header(std::string_view bytes, const std::string& path);
  void add_entry(const std::string& key, std::string_view bytes, const std::string& path);
  void add_up_slices();
  std::string where(std::string_view name) const;
  const Piece& piece(std::string_view name) const;
  const ReadableFile& shard(int number) const;
  const ReadableFile& checked_file(const Piece& piece, const std::string& where) const;
  void check_readable(const Piece& piece, const std::string& where) const;
  Tensor read_piece(const Piece& piece, const std::string& where) const;
  void verify_piece(const Piece& piece, const std::string& where) const;
  Part stored_part(std::string_view name, const Entry& whole, const TensorSlice& stored) const;
  std::vector<Part> parts_of(std::string_view name, const Entry& whole, const TensorSlice& wanted) const;
  Tensor assembled(std::string_view name, const Entry& whole, const TensorSlice& wanted) const;

  FileSystem& files_;
  const std::string prefix_;
  std::string committed_;  // prefix_, or where it was set aside
  int num_shards_ = 0;
  bool big_endian_ = false;
  Pieces pieces_;  // by key: tensors, and the slices of tensors

  mutable Mutex mutex_;
  mutable std::map<int, std::unique_ptr<const ReadableFile>> shards_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
