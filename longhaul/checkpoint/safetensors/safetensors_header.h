#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/file.h"
#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"

namespace longhaul {

// The format's bounds: docs/formats/safetensors.md.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes of JSON
inline constexpr size_t kMaxSafetensorsRank = 254;              // ours: of TensorFlow's tensors
inline constexpr char kSafetensorsMetadata[] = "__metadata__";  // no tensor has this name

// What a safetensors file says of a tensor.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as the file names it ("F32"): perhaps one that we cannot hold (safetensors_dtype)
  Shape shape;
  uint64_t begin = 0, end = 0;  // of its bytes, in the data section

  uint64_t bytes() const { return end - begin; }
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> tensors;  // as they lie in the file
  uint64_t data_begin = 0;                // where the data section begins in the file

  bool operator==(const SafetensorsHeader&) const = default;
};

// The header of the file, after checking that the file has the bytes that it speaks of, each one once and no others.
// Memory is taken for lengths that the file has the bytes for. NotFoundError: no such file. DataLossError: the file is
// damaged, or no safetensors file; the message names the place.
SafetensorsHeader read_safetensors_header(const std::string& path, FileSystem& files = FileSystem::real());
SafetensorsHeader read_safetensors_header(const ReadableFile& file, const std::string& path);

// The same of the JSON alone, in a file of `file_size` bytes, which has it. `path` begins the messages.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t file_size, const std::string& path);

// The bytes of a file before its data section: the length and the JSON, padded with spaces to a multiple of 8.
// InvalidArgumentError: a text is not UTF-8, or the header would be longer than readers take it.
std::string format_safetensors_header(const SafetensorsHeader& header, const std::string& path);

// Our dtype of that name, kInvalid for one that we cannot hold (F8_E4M3, ...); nullopt: the format's specification has
// no such name.
std::optional<DType> safetensors_dtype(std::string_view name);

// "F32"; nullptr: the format has no such dtype. Takes TensorFlow's numbers, also unknown ones.
const char* safetensors_dtype_name(int dtype);

// The place of a dtype that the format has in the order that the format's own writer lays tensors out in, which keeps
// each one aligned to its elements: a greater one comes first.
int safetensors_layout_rank(DType dtype);

}  // namespace longhaul
