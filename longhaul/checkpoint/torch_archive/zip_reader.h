#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

inline constexpr uint64_t kMaxZipDirectory = uint64_t{64} << 20;  // bytes of a zip file's directory

struct ZipEntry {
  std::string name{};
  uint64_t size = 0;
  uint64_t header = 0;  // where its local header begins
  uint32_t crc = 0;
  bool is_plain = true;  // neither compressed nor encrypted
};

// Reads the zip files that PyTorch writes, of which tensors are not compressed. A size is believed only after it was
// compared with the file's. Any thread may call.
//
// DataLossError: the file is damaged, or not a zip file; the message names the place.
class ZipReader {
 public:
  // Reads the directory. Borrows the file; `path` begins the messages.
  ZipReader(const ReadableFile& file, std::string path);

  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the directory's order
  const ZipEntry* find(std::string_view name) const;                 // nullptr: no such entry

  // Reads an entry into `size` bytes, and verifies its checksum. UnimplementedError: it is compressed or encrypted.
  void read(const ZipEntry& entry, char* out) const;

  // DataLossError also: it is longer than `most` bytes.
  std::string read_text(const ZipEntry& entry, uint64_t most) const;

  const std::string& path() const { return path_; }
  uint64_t file_size() const { return size_; }

 private:
  struct Directory {
    uint64_t begin = 0, size = 0, entries = 0;
  };

  std::string read_bytes(uint64_t offset, uint64_t count, const char* what) const;
  Directory find_directory() const;
  Directory directory64(uint64_t locator) const;
  void read_directory(const Directory& directory);
  uint64_t data_begin(const ZipEntry& entry) const;
  [[noreturn]] void fail(const std::string& what) const;

  const ReadableFile& file_;
  const std::string path_;
  const uint64_t size_;
  uint64_t data_end_ = 0;  // where the directory begins
  std::vector<ZipEntry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // in entries_
};

}  // namespace longhaul
