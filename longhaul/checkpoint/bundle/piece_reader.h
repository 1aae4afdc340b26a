#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/bundle/bundle_index.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// One of several pieces that are read together.
struct WantedPiece {
  const StoredPiece* piece = nullptr;
  std::string where;         // for messages
  Tensor out;                // filled; has the piece's dtype and shape. None: the bytes are only verified
  std::exception_ptr error;  // output: why the piece could not be read; null: it was read, and its checksum is right
};

// Reads the data files of a checkpoint, which are opened when needed. Trusts the index only as far as the data files
// confirm it. Errors as in BundleReader; messages begin with `where`. Any thread may call.
class PieceReader {
 public:
  // The file system and the index must outlive this object.
  PieceReader(FileSystem& files, const BundleIndex& index) : files_(files), index_(index) {}

  // Throws unless the dtype, the shape and the size match and the data file has that many bytes. So no more memory is
  // allocated than the file can fill.
  void check(const StoredPiece& piece, const std::string& where) const;

  // Only the first half of check(). Can also be used for a tensor that is stored in slices.
  static void check_shape(const BundleEntry& entry, int64_t size, const std::string& where);

  // Reads all pieces, with one batch for each data file. A piece that cannot be read does not affect the others. Pieces
  // with an `out` must have passed check(). The bytes of a dtype that the library does not support can still be
  // verified. `on_bytes` is called with the number of bytes of each part that was read.
  void read(std::span<WantedPiece> wanted, const std::function<void(uint64_t bytes)>& on_bytes = {}) const;

 private:
  class Batch;

  const ReadableFile& file_of(const StoredPiece& piece, const std::string& where) const;
  const ReadableFile& shard(int number) const;
  std::unique_ptr<const ReadableFile> open_shard(const std::string& path) const;
  void read_strings_of(const ReadableFile& file, WantedPiece& wanted) const;

  FileSystem& files_;
  const BundleIndex& index_;
  mutable Mutex mutex_;
  mutable std::map<int, std::unique_ptr<const ReadableFile>> shards_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
