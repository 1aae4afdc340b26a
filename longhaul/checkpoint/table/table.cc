#include "longhaul/checkpoint/table/table.h"

#include <fmt/format.h>
#include <snappy.h>

#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/table/table_format.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

using namespace table_format;

std::string uncompressed(std::string_view block, const std::string& where) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &size)) {
    throw DataLossError(where + ": Snappy data without a length");
  }
  if (size > block.size() * kMostSnappyGrowth) {
    throw DataLossError(fmt::format("{}: {} bytes of Snappy data claim to hold {}", where, block.size(), size));
  }
  std::string out;
  if (!snappy::Uncompress(block.data(), block.size(), &out)) throw DataLossError(where + ": damaged Snappy data");
  return out;
}

// Where the entries end and the restart offsets begin.
size_t end_of_entries(const std::string& block, const std::string& where) {
  if (block.size() < 4) throw DataLossError(fmt::format("{}: {} bytes are too few for a block", where, block.size()));
  const uint64_t restarts = wire::load<uint32_t>(block.data() + block.size() - 4);
  if (restarts > (block.size() - 4) / 4) {
    throw DataLossError(fmt::format("{}: {} restarts in a block of {} bytes", where, restarts, block.size()));
  }
  return block.size() - 4 - 4 * restarts;
}

}  // namespace

BlockCursor::BlockCursor(std::string contents, std::string where)
    : contents_(std::move(contents)), where_(std::move(where)), end_(end_of_entries(contents_, where_)) {}

uint32_t BlockCursor::read_varint() {
  std::string_view rest(contents_.data() + position_, end_ - position_);
  uint64_t value = 0;
  if (!take_varint(rest, value) || value > UINT32_MAX) {
    throw DataLossError(fmt::format("{}: no valid entry at {}", where_, position_));
  }
  position_ = end_ - rest.size();
  return static_cast<uint32_t>(value);
}

bool BlockCursor::next() {
  if (position_ == end_) return false;
  const uint32_t shared = read_varint();
  const uint64_t unshared = read_varint();
  const uint64_t value_size = read_varint();
  if (shared > key_.size() || unshared + value_size > end_ - position_) {
    throw DataLossError(fmt::format("{}: an entry of {}+{}+{} bytes at {}, but only {} are left", where_, shared,
                                    unshared, value_size, position_, end_ - position_));
  }
  key_.resize(shared);
  key_.append(contents_, position_, unshared);
  value_at_ = position_ + unshared;
  value_size_ = value_size;
  position_ = value_at_ + value_size;
  return true;
}

Table::Table(std::unique_ptr<const ReadableFile> file, std::string name)
    : file_(std::move(file)), name_(std::move(name)), size_(file_->size()) {
  read_footer();
}

bool Table::is_table(const ReadableFile& file) {
  const uint64_t size = file.size();
  char magic[kMagicSize];
  return size >= kFooterSize && file.read(size - kMagicSize, magic, kMagicSize) == kMagicSize &&
         wire::load<uint64_t>(magic) == kMagic;
}

bool Table::parse_handle(std::string_view& text, Handle& handle) {
  return take_varint(text, handle.offset) && take_varint(text, handle.size);
}

std::string Table::read_raw(uint64_t offset, uint64_t size) const {
  std::string bytes(size, '\0');
  const size_t got = file_->read(offset, bytes.data(), size);
  if (got != size) {
    throw DataLossError(
        fmt::format("{}: block at {}: truncated block read: {} bytes, want {}", name_, offset, got, size));
  }
  return bytes;
}

void Table::read_footer() {
  if (size_ < kFooterSize) {
    throw DataLossError(fmt::format("{}: file is too short to be an sstable: {} bytes", name_, size_));
  }
  const std::string footer = read_raw(size_ - kFooterSize, kFooterSize);
  const auto magic = wire::load<uint64_t>(footer.data() + kFooterSize - kMagicSize);
  if (magic != kMagic) {
    throw DataLossError(
        fmt::format("{}: not an sstable (bad magic number): {:#018x}, want {:#018x}", name_, magic, kMagic));
  }
  std::string_view handles(footer.data(), kFooterSize - kMagicSize);
  Handle metaindex, index;
  if (!parse_handle(handles, metaindex) || !parse_handle(handles, index)) {
    throw DataLossError(name_ + ": the footer does not say where the index block is");
  }
  index_ = read_block(index);
}

BlockCursor Table::read_block(const Handle& handle) const {
  const std::string where = fmt::format("{}: block at {}", name_, handle.offset);
  const uint64_t limit = size_ - kFooterSize;
  if (handle.offset > limit || limit - handle.offset < kTrailerSize ||
      handle.size > limit - handle.offset - kTrailerSize) {
    throw DataLossError(
        fmt::format("{}: truncated block read: {} bytes, but the file has {}", where, handle.size, size_));
  }
  std::string block = read_raw(handle.offset, handle.size + kTrailerSize);
  const uint32_t stored = unmask_crc32c(wire::load<uint32_t>(block.data() + handle.size + 1));
  const uint32_t found = crc32c(std::string_view(block).substr(0, handle.size + 1));
  if (found != stored) {
    throw DataLossError(fmt::format("{}: block checksum mismatch: crc {:#010x}, want {:#010x}", where, found, stored));
  }
  const char type = block[handle.size];
  block.resize(handle.size);
  if (type == kTypeRaw) return BlockCursor(std::move(block), where);
  if (type == kTypeSnappy) return BlockCursor(uncompressed(block, where), where);
  throw DataLossError(fmt::format("{}: unknown compression {}", where, static_cast<int>(type)));
}

Table::Cursor Table::seek(std::string_view key) const {
  Cursor cursor(this);
  cursor.seek(key);
  return cursor;
}

Table::Cursor::Cursor(const Table* table) : table_(table), index_(table->index_) {}

void Table::Cursor::open_block() {
  std::string_view value = index_.value();
  Handle handle;
  if (!parse_handle(value, handle)) throw DataLossError(table_->name_ + ": an index entry is not a block handle");
  data_ = table_->read_block(handle);
}

void Table::Cursor::next() {
  const std::string last_key = data_.key();
  const bool first = !valid_;
  while (!(valid_ = data_.next())) {
    if (!index_.next()) return;
    open_block();
  }
  if (!first && data_.key() <= last_key) throw DataLossError(table_->name_ + ": the keys are not in order");
}

// An index entry's key is not less than any key of its block, so the blocks before the first such entry are passed
// over.
void Table::Cursor::seek(std::string_view key) {
  do {
    if (!index_.next()) return;
  } while (index_.key() < key);
  open_block();
  do {
    next();
  } while (valid_ && data_.key() < key);
}

}  // namespace longhaul
