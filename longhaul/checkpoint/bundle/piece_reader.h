#pragma once

#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/bundle/bundle_index.h"
#include "longhaul/io/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// One of several pieces that are read together.
struct WantedPiece {
  const StoredPiece* piece = nullptr;
  std::string where;         // for messages
  Tensor out;                // filled, of the piece's dtype and shape; none: the bytes are only verified
  std::exception_ptr error;  // out: why it could not be read; null: it was read, and its checksum is right
};

// Reads the data files of a checkpoint, opening them when needed. Trusts the index only as far as the data files
// confirm it. Errors as in BundleReader, beginning with `where`. Any thread.
class PieceReader {
 public:
  // The file system and the index must outlive this object.
  PieceReader(FileSystem& files, const BundleIndex& index) : files_(files), index_(index) {}

  // Throws unless the dtype, the shape and the size match, and the data file has that many bytes: so the file can fill
  // all memory that the piece takes.
  void check(const StoredPiece& piece, const std::string& where) const;

  // The first half of that: also for a tensor that is stored in slices.
  static void check_shape(const BundleEntry& entry, int64_t size, const std::string& where);

  // Reads all pieces, those of one data file in one batch; a piece that cannot be read does not affect the others.
  // Pieces with an `out` must have passed check(). For a dtype that we cannot hold, the bytes can still be verified.
  void read(std::span<WantedPiece> wanted) const;

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
