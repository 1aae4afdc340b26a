#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Writes a zip file as PyTorch does: entries without compression, whose data begin at multiples of 64 bytes, and a
// directory that ends with the records of 64 bits. The same calls give the same bytes. One thread at a time may call.
class ZipWriter {
 public:
  explicit ZipWriter(WritableFile& file) : file_(file) {}

  // With an owner the bytes are borrowed (WritableFile::append_borrowed).
  void add(const std::string& name, std::string_view bytes, std::shared_ptr<const void> owner = nullptr);

  // Writes the directory. The caller syncs and closes the file.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t size = 0, header = 0;
    uint32_t crc = 0;
  };

  void append(std::string_view bytes);

  WritableFile& file_;
  uint64_t offset_ = 0;  // bytes written so far
  std::vector<Entry> entries_;
};

}  // namespace longhaul
