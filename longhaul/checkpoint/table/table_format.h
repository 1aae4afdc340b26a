#pragma once

#include <cstddef>
#include <cstdint>

// The numbers of the table format; docs/formats/tensor_bundle.md explains them.
namespace longhaul::table_format {

inline constexpr size_t kFooterSize = 48;
inline constexpr size_t kMagicSize = 8;
inline constexpr uint64_t kMagic = 0xdb4775248b80fb57;
inline constexpr size_t kTrailerSize = 5;  // after each block: its type and the masked CRC-32C of block and type
inline constexpr char kTypeRaw = 0;
inline constexpr char kTypeSnappy = 1;

// For writing. Readers accept other values.
inline constexpr size_t kBlockSize = 262144;
inline constexpr int kRestartInterval = 16;

// The largest growth factor of a Snappy stream: a copy of 64 bytes takes 3.
inline constexpr uint64_t kMostSnappyGrowth = 22;

}  // namespace longhaul::table_format
