#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/files/file.h"

namespace longhaul {

// The entries of one block, in order. Errors as in Table.
class BlockCursor {
 public:
  BlockCursor() = default;
  BlockCursor(std::string contents, std::string where);

  // Moves to the next entry; the first call, to the first one. False after the last.
  bool next();
  const std::string& key() const { return key_; }
  std::string_view value() const { return std::string_view(contents_).substr(value_at_, value_size_); }

 private:
  uint32_t read_varint();

  std::string contents_;
  std::string where_;  // for messages: "model.ckpt-100.index: block at 4096"
  size_t position_ = 0;
  size_t end_ = 0;
  std::string key_;
  size_t value_at_ = 0;
  size_t value_size_ = 0;
};

// Reads a sorted map in a file: LevelDB's table format, in which a checkpoint's index is written
// (docs/formats/tensor_bundle.md). Blocks may be compressed with Snappy. The checksum of every block read is verified.
//
// DataLossError: the file is not a table or is damaged; the message names the file, the block's offset and the
// mismatch. Memory is allocated for one block at a time, never for more than the file can fill.
//
// Any thread may call the const methods; a Cursor is for one thread and must not outlive its table.
class Table {
 public:
  // Reads the footer and the index block. `name` is for messages.
  Table(std::unique_ptr<const ReadableFile> file, std::string name);

  // Whether the file ends like a table.
  static bool is_table(const ReadableFile& file);

  // Iterates over the entries in the order of their keys:
  //   for (auto cursor = table.seek(""); cursor.valid(); cursor.next()) use(cursor.key(), cursor.value());
  class Cursor {
   public:
    bool valid() const { return valid_; }
    void next();
    const std::string& key() const { return data_.key(); }
    std::string_view value() const { return data_.value(); }

   private:
    friend class Table;
    explicit Cursor(const Table* table);
    void seek(std::string_view key);
    void open_block();

    const Table* table_;
    BlockCursor index_;
    BlockCursor data_;
    bool valid_ = false;
  };

  // A cursor at the first entry whose key is not less than `key`.
  Cursor seek(std::string_view key) const;

  uint64_t file_size() const { return size_; }

 private:
  struct Handle {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  static bool parse_handle(std::string_view& text, Handle& handle);
  void read_footer();
  BlockCursor read_block(const Handle& handle) const;
  std::string read_raw(uint64_t offset, uint64_t size) const;

  std::unique_ptr<const ReadableFile> file_;
  std::string name_;
  uint64_t size_ = 0;
  BlockCursor index_;  // before its first entry
};

}  // namespace longhaul
