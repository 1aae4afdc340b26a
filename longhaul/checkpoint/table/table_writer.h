#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/file.h"

namespace longhaul {

// Writes what Table reads, by LevelDB's own builder: uncompressed blocks of 256 KiB. One thread. The same entries give
// the same bytes. The file's errors come out of the call that met them; after one the table is lost.
class TableWriter {
 public:
  // `file` outlives the writer, which neither syncs nor closes it.
  explicit TableWriter(WritableFile& file);
  ~TableWriter();

  // Each key is greater than the one before, byte by byte; InternalError otherwise.
  void add(std::string_view key, std::string_view value);
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longhaul
