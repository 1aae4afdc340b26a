#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Bytes in pieces: what is sent shares the tensors' memory, what is received comes as a transport's buffers.
namespace longhaul {

// A piece of a message, and what keeps it alive.
struct Slice {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};
using Slices = std::vector<Slice>;

size_t total_bytes(const Slices& slices);
std::string joined(const Slices& slices);  // copies

// Puts a message together: short bytes are collected, long ones stay where they are.
class SliceWriter {
 public:
  void copy(std::string_view bytes) { collected_.append(bytes); }
  // Collects short bytes, and borrows others from `owner`.
  void borrow(std::string_view bytes, std::shared_ptr<const void> owner);
  void varint(uint64_t value);
  void tag(uint32_t field, uint32_t type) { varint(field << 3 | type); }
  // A field with a message, a text or bytes.
  void counted(uint32_t field, std::string_view bytes);
  // A field of four bytes with the CRC-32C of all that was written before it.
  void checksum(uint32_t field);

  Slices take();  // what was written, in order

 private:
  void end_collected();

  std::string collected_;
  Slices slices_;
};

// Takes a message off the front of its pieces. Nothing is believed beyond their end: each take returns false there, and
// the rest is of no use then. The slices must outlive it.
class SliceReader {
 public:
  enum class Sum { kNone, kChecksum };
  explicit SliceReader(const Slices& slices, Sum sum = Sum::kNone)
      : slices_(slices), has_checksum_(sum == Sum::kChecksum), left_(total_bytes(slices)) {}

  size_t left() const { return left_; }
  // With Sum::kChecksum: the CRC-32C of what was taken, which is computed while the bytes are in the processor's cache.
  uint32_t checksum();
  bool take_varint(uint64_t& value);
  bool take_tag(uint32_t& field, uint32_t& type);
  // A length, with at least so many bytes behind it.
  bool take_length(size_t& length);
  bool take(void* out, size_t count);
  bool take(std::string& out, size_t count);  // takes memory only for bytes that are there
  bool skip(size_t count);
  bool skip_field(uint32_t type);

 private:
  bool take_byte(unsigned char& byte);
  void sum_slice();

  const Slices& slices_;
  const bool has_checksum_;
  size_t left_;
  size_t slice_ = 0;
  size_t offset_ = 0;  // in that slice
  size_t summed_ = 0;  // the same, of the checksum
  uint32_t checksum_ = 0;
};

}  // namespace longhaul
