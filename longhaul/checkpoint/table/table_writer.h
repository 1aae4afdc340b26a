#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/file.h"

namespace longhaul {

// Writes the format that Table reads, with LevelDB's own builder: uncompressed blocks of 256 KiB. One thread. The same
// entries give the same bytes. Errors of the file are thrown by the call that meets them; after one, the table is
// unusable.
class TableWriter {
 public:
  // `file` must outlive the writer, which neither syncs nor closes it.
  explicit TableWriter(WritableFile& file);
  ~TableWriter();

  // Keys must be strictly ascending, byte by byte; otherwise InternalError.
  void add(std::string_view key, std::string_view value);
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longhaul
