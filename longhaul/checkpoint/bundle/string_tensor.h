#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "longhaul/io/files/file.h"

namespace longhaul {

// The layout of a string tensor in a data file: the length of each element as a varint, the masked CRC of the lengths,
// and the bytes of all elements (docs/formats/tensor_bundle.md).

struct StoredBytes {
  uint64_t size = 0;
  uint32_t crc = 0;  // not masked
};

// Passes the bytes to `append`, piece by piece, and returns the values for the tensor's entry.
StoredBytes write_strings(std::span<const std::string> strings, const std::function<void(std::string_view)>& append);

// Fills `strings` from the `stored.size` bytes at `offset`, which the file must have. With `big_endian`, the checksums
// were computed on a big-endian machine. DataLossError ("<where>: The length checksum does not match ...").
void read_strings(const ReadableFile& file, uint64_t offset, const StoredBytes& stored, bool big_endian,
                  const std::string& where, std::span<std::string> strings);

// The same checks on `count` elements, without keeping them, in constant memory.
void verify_strings(const ReadableFile& file, uint64_t offset, const StoredBytes& stored, bool big_endian,
                    const std::string& where, uint64_t count);

// DataLossError: "<where>: Checksum does not match: stored ... vs. calculated on the restored bytes ...".
[[noreturn]] void throw_checksum_mismatch(const std::string& where, const char* what, uint32_t stored, uint32_t found);

}  // namespace longhaul
