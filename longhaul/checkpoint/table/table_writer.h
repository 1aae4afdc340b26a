#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Writes the format that Table reads, with LevelDB's own builder, in uncompressed blocks of 256 KiB. The same entries
// give the same bytes. A call throws the errors of the file that occur in it; after one, the table is unusable. One
// thread at a time may call.
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
