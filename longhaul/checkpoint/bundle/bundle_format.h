#pragma once

#include <cstddef>
#include <cstdint>

// The numbers in a checkpoint's files; docs/formats/tensor_bundle.md explains them.
namespace longhaul::bundle_format {

inline constexpr int kVersion = 1;
inline constexpr int kMinProducer = 0;  // the oldest that we read

// A tensor of at least this many bytes starts at a multiple of the alignment, so that it can be written and read past
// the page cache.
inline constexpr uint64_t kLargeTensor = 64 * 1024;
inline constexpr uint64_t kLargeAlignment = 4096;

// Tensors are written and read in pieces that are still in the processor's cache when their checksums are computed.
inline constexpr size_t kChunk = 256 * 1024;

}  // namespace longhaul::bundle_format
