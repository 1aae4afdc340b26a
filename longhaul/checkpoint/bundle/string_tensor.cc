#include "longhaul/checkpoint/bundle/string_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/base/varint.h"
#include "longhaul/checkpoint/bundle/bundle_format.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

constexpr size_t kChecksumSize = 4;

template <typename T>
uint32_t extend_by_number(uint32_t crc, T number, bool big_endian) {
  if (big_endian) number = wire::byte_swapped(number);
  return extend_crc32c(crc, {reinterpret_cast<const char*>(&number), sizeof number});
}

// The checksum covers the lengths as fixed-width numbers, not as the varints that are stored.
uint32_t extend_by_length(uint32_t crc, uint64_t length, bool big_endian) {
  if (length <= UINT32_MAX) return extend_by_number(crc, static_cast<uint32_t>(length), big_endian);
  return extend_by_number(crc, length, big_endian);
}

// A part of a file, read from its start through a buffer.
class Section {
 public:
  Section(const ReadableFile& file, uint64_t offset, uint64_t size, const std::string& where)
      : file_(file), offset_(offset), left_(size), where_(where) {}

  uint64_t left() const { return left_ + buffered().size(); }

  uint64_t read_varint() {
    std::string_view text = buffered();
    uint64_t value = 0;
    if (!take_varint(text, value)) {
      fill();
      text = buffered();
      if (!take_varint(text, value)) throw DataLossError(where_ + ": Invalid size in bundle entry: no string length");
    }
    begin_ = buffer_.size() - text.size();
    return value;
  }

  void read(char* out, size_t size) {
    const size_t from_buffer = std::min(size, buffered().size());
    std::copy_n(buffered().data(), from_buffer, out);
    begin_ += from_buffer;
    if (from_buffer == size) return;
    out += from_buffer;
    size -= from_buffer;
    if (size >= bundle_format::kChunk) return read_directly(out, size);
    fill();
    if (buffered().size() < size) throw_truncated();
    read(out, size);
  }

 private:
  std::string_view buffered() const { return std::string_view(buffer_).substr(begin_); }

  void fill() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t old_size = buffer_.size();
    const size_t count = static_cast<size_t>(std::min<uint64_t>(left_, bundle_format::kChunk));
    buffer_.resize(old_size + count);
    read_directly(buffer_.data() + old_size, count);
  }

  void read_directly(char* out, size_t size) {
    if (size > left_ || file_.read(offset_, out, size) != size) throw_truncated();
    offset_ += size;
    left_ -= size;
  }

  [[noreturn]] void throw_truncated() { throw DataLossError(where_ + ": the data file ended while it was read"); }

  const ReadableFile& file_;
  uint64_t offset_;
  uint64_t left_;  // not yet in the buffer
  const std::string& where_;
  std::string buffer_;
  size_t begin_ = 0;
};

// Passes each element's length to `use`. Checks their sum against the bytes that there are, and their checksum; returns
// the checksum so far.
template <typename Use>
uint32_t read_lengths(Section& section, uint64_t count, bool big_endian, const std::string& where, Use use) {
  uint64_t total = kChecksumSize;
  uint32_t crc = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = section.read_varint();
    if (length > section.left() || __builtin_add_overflow(total, length, &total)) total = UINT64_MAX;
    crc = extend_by_length(crc, length, big_endian);
    use(length);
  }
  if (total != section.left()) {
    throw DataLossError(fmt::format("{}: Invalid size in bundle entry: the strings take {} bytes, but {} are left",
                                    where, total - kChecksumSize,
                                    section.left() - std::min(section.left(), kChecksumSize)));
  }
  char checksum[kChecksumSize];
  section.read(checksum, sizeof checksum);
  uint32_t stored = wire::load<uint32_t>(checksum);
  if (big_endian) stored = wire::byte_swapped(stored);
  if (unmask_crc32c(stored) != crc) throw_checksum_mismatch(where, "The length checksum", unmask_crc32c(stored), crc);
  return extend_crc32c(crc, {checksum, sizeof checksum});
}

}  // namespace

void throw_checksum_mismatch(const std::string& where, const char* what, uint32_t stored, uint32_t found) {
  throw DataLossError(
      fmt::format("{}: {} does not match: stored {:#010x} vs. calculated on the restored bytes {:#010x}", where, what,
                  stored, found));
}

StoredBytes write_strings(std::span<const std::string> strings, const std::function<void(std::string_view)>& append) {
  std::string head;
  uint32_t crc = 0;
  for (const std::string& text : strings) {
    append_varint(head, text.size());
    crc = extend_by_length(crc, text.size(), false);
  }
  const size_t lengths_size = head.size();
  wire::append(head, mask_crc32c(crc));
  append(head);
  StoredBytes stored{head.size(), extend_crc32c(crc, std::string_view(head).substr(lengths_size))};
  for (const std::string& text : strings) {
    append(text);
    stored.size += text.size();
    stored.crc = extend_crc32c(stored.crc, text);
  }
  return stored;
}

void read_strings(const ReadableFile& file, uint64_t offset, const StoredBytes& stored, bool big_endian,
                  const std::string& where, std::span<std::string> strings) {
  Section section(file, offset, stored.size, where);
  std::vector<uint64_t> lengths;
  lengths.reserve(strings.size());
  const auto note = [&](uint64_t length) { lengths.push_back(length); };
  uint32_t crc = read_lengths(section, strings.size(), big_endian, where, note);
  for (size_t i = 0; i < strings.size(); ++i) {
    strings[i].resize(lengths[i]);
    section.read(strings[i].data(), strings[i].size());
    crc = extend_crc32c(crc, strings[i]);
  }
  if (crc != stored.crc) throw_checksum_mismatch(where, "Checksum", stored.crc, crc);
}

void verify_strings(const ReadableFile& file, uint64_t offset, const StoredBytes& stored, bool big_endian,
                    const std::string& where, uint64_t count) {
  Section section(file, offset, stored.size, where);
  uint32_t crc = read_lengths(section, count, big_endian, where, [](uint64_t) {});
  std::string piece;
  while (section.left() > 0) {
    piece.resize(std::min<uint64_t>(section.left(), bundle_format::kChunk));
    section.read(piece.data(), piece.size());
    crc = extend_crc32c(crc, piece);
  }
  if (crc != stored.crc) throw_checksum_mismatch(where, "Checksum", stored.crc, crc);
}

}  // namespace longhaul
