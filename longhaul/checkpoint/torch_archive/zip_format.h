#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The numbers of zip files as PyTorch writes them: docs/formats/torch_archive.md. All integers are little endian.
namespace longhaul::zip {

inline constexpr uint32_t kLocalHeader = 0x04034b50;
inline constexpr uint32_t kDirectoryEntry = 0x02014b50;
inline constexpr uint32_t kEnd64 = 0x06064b50;
inline constexpr uint32_t kEnd64Locator = 0x07064b50;
inline constexpr uint32_t kEnd = 0x06054b50;

// Of the fixed parts.
inline constexpr size_t kLocalHeaderBytes = 30;
inline constexpr size_t kDirectoryEntryBytes = 46;
inline constexpr size_t kEnd64Bytes = 56;
inline constexpr size_t kEnd64LocatorBytes = 20;
inline constexpr size_t kEndBytes = 22;

inline constexpr uint16_t kExtra64 = 1;         // the extra field with sizes and places of 64 bits
inline constexpr uint16_t kPadding = 0x4246;    // "FB": the extra field that aligns the data
inline constexpr size_t kExtraHeaderBytes = 4;  // of an extra field: its number and its length
inline constexpr size_t kAlignment = 64;        // of each entry's data
inline constexpr uint32_t kIn64 = 0xffffffff;   // "the extra field has the value"
inline constexpr uint16_t kStored = 0;          // the only method: no compression
inline constexpr uint16_t kEncrypted = 1;       // a flag
inline constexpr uint16_t kUtf8 = 0x800;        // a flag: of the name
inline constexpr uint16_t kVersion = 45;        // of the specification that a reader needs: with 64 bits
inline constexpr uint16_t kFirstDate = 0x21;    // 1980-01-01: the same tensors give the same bytes

// Takes integers from the front of bytes; the caller has checked that they are there.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  uint16_t u16() { return static_cast<uint16_t>(take(2)); }
  uint32_t u32() { return static_cast<uint32_t>(take(4)); }
  uint64_t u64() { return take(8); }
  std::string_view bytes(size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  size_t left() const { return rest_.size(); }

 private:
  uint64_t take(size_t count) {
    uint64_t value = 0;
    const std::string_view taken = bytes(count);
    for (size_t i = 0; i < taken.size(); ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }

  std::string_view rest_;
};

inline void put(std::string& out, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}
inline void put16(std::string& out, uint64_t value) {
  put(out, value, 2);
}
inline void put32(std::string& out, uint64_t value) {
  put(out, value, 4);
}
inline void put64(std::string& out, uint64_t value) {
  put(out, value, 8);
}

}  // namespace longhaul::zip
