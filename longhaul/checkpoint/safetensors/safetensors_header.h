#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"

namespace longhaul {

// The format's bounds: docs/formats/safetensors.md.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes of JSON
inline constexpr size_t kMaxSafetensorsRank = 254;              // the library's limit, that of TensorFlow's tensors
inline constexpr char kSafetensorsMetadata[] = "__metadata__";  // no tensor has this name

// A safetensors file's description of a tensor.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // the name in the file ("F32"); the library may not support it (safetensors_dtype)
  Shape shape;
  uint64_t begin = 0, end = 0;  // the place of its bytes in the data section

  uint64_t bytes() const { return end - begin; }
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> tensors;  // in file order
  uint64_t data_begin = 0;                // where the data section begins in the file

  bool operator==(const SafetensorsHeader&) const = default;
};

// Reads the header of the file, and checks that its tensors cover all bytes of the data section exactly once. Allocates
// memory only for lengths that the file can fill. NotFoundError: no such file. DataLossError: the file is damaged, or
// not a safetensors file; the message names the place.
SafetensorsHeader read_safetensors_header(const std::string& path, FileSystem& files = FileSystem::real());
SafetensorsHeader read_safetensors_header(const ReadableFile& file, const std::string& path);

// The same from the JSON alone, for a file of `file_size` bytes, which must be large enough to contain it. `path`
// begins the messages.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t file_size, const std::string& path);

// The bytes of a file before its data section: the length and the JSON, padded with spaces to a multiple of 8.
// InvalidArgumentError: a text is not UTF-8, or the header would be longer than readers accept.
std::string format_safetensors_header(const SafetensorsHeader& header, const std::string& path);

// The dtype of that name; kInvalid: the library does not support it (F8_E4M3, ...); nullopt: the specification has no
// such name.
std::optional<DType> safetensors_dtype(std::string_view name);

// "F32"; nullptr: the format has no such dtype. Takes TensorFlow's numbers, including unknown ones.
const char* safetensors_dtype_name(int dtype);

// The rank of a dtype in the order in which the format's own writer lays out tensors. Greater ranks precede, which
// keeps each tensor aligned to its element size. The format must have the dtype.
int safetensors_layout_rank(DType dtype);

}  // namespace longhaul
