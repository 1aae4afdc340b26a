#include "longhaul/checkpoint/safetensors/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "longhaul/checkpoint/safetensors/safetensors_json.h"
#include "longhaul/checkpoint/table/wire.h"

namespace longhaul {
namespace {

constexpr uint64_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kAlignment = 8;  // of the data section

struct FormatDType {
  const char* name;
  DType dtype;  // kInvalid: we have none like it
  int bits;
};

// In the format's own order, by growing alignment.
constexpr FormatDType kDTypes[] = {
    {"BOOL", kBool, 8},
    {"F4", kInvalid, 4},
    {"F6_E2M3", kInvalid, 6},
    {"F6_E3M2", kInvalid, 6},
    {"U8", kUInt8, 8},
    {"I8", kInt8, 8},
    {"F8_E5M2", kInvalid, 8},
    {"F8_E4M3", kInvalid, 8},
    {"F8_E8M0", kInvalid, 8},
    {"F8_E4M3FNUZ", kInvalid, 8},
    {"F8_E5M2FNUZ", kInvalid, 8},
    {"I16", kInt16, 16},
    {"U16", kUInt16, 16},
    {"F16", kHalf, 16},
    {"BF16", kBFloat16, 16},
    {"I32", kInt32, 32},
    {"U32", kUInt32, 32},
    {"F32", kFloat, 32},
    {"C64", kComplex64, 64},
    {"F64", kDouble, 64},
    {"I64", kInt64, 64},
    {"U64", kUInt64, 64},
};

template <typename Is>
const FormatDType* find_format_dtype(Is is) {
  const auto it = std::find_if(std::begin(kDTypes), std::end(kDTypes), is);
  return it == std::end(kDTypes) ? nullptr : it;
}

const FormatDType* named_dtype(std::string_view name) {
  return find_format_dtype([&](const FormatDType& one) { return one.name == name; });
}

const FormatDType* numbered_dtype(int number) {
  return find_format_dtype([&](const FormatDType& one) { return one.dtype != kInvalid && one.dtype == number; });
}

// The bytes that a tensor must have; nullopt: there can be no such tensor.
std::optional<uint64_t> bytes_of(const Shape& shape, int bits) {
  const int64_t elements = shape.num_elements();
  int64_t all_bits = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, int64_t{bits}, &all_bits)) return std::nullopt;
  if (all_bits % 8 != 0) return std::nullopt;
  return static_cast<uint64_t>(all_bits / 8);
}

// Of a dtype that is not known, only the place is.
void check_size(const SafetensorsEntry& entry, const std::string& path) {
  const FormatDType* dtype = named_dtype(entry.dtype);
  if (dtype == nullptr || bytes_of(entry.shape, dtype->bits) == entry.bytes()) return;
  throw DataLossError(fmt::format("{}: {} is {}{}, but has {} bytes", path, quoted_name(entry.name), entry.dtype,
                                  entry.shape.to_string(), entry.bytes()));
}

// That the tensors fill the data section, each byte once.
void check_layout(const std::vector<SafetensorsEntry>& tensors, uint64_t data_bytes, const std::string& path) {
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : tensors) {
    if (entry.begin != end || entry.end < entry.begin || entry.end > data_bytes) {
      throw DataLossError(fmt::format("{}: {} has data_offsets [{},{}], but must begin at {} and end within {} bytes",
                                      path, quoted_name(entry.name), entry.begin, entry.end, end, data_bytes));
    }
    check_size(entry, path);
    end = entry.end;
  }
  if (end == data_bytes) return;
  throw DataLossError(
      fmt::format("{}: the tensors have {} bytes, but the file has {} for them", path, end, data_bytes));
}

// The length of the JSON, which the file has.
uint64_t header_bytes(std::string_view length, uint64_t file_size, const std::string& path) {
  if (length.size() < kLengthBytes) {
    throw DataLossError(fmt::format("{}: {} bytes are not a safetensors file", path, file_size));
  }
  const auto bytes = wire::load<uint64_t>(length.data());
  if (bytes <= kMaxSafetensorsHeader && bytes <= file_size - kLengthBytes) return bytes;
  throw DataLossError(fmt::format("{}: the header claims {} bytes in a file of {}; readers accept at most {}", path,
                                  bytes, file_size, kMaxSafetensorsHeader));
}

std::string read_bytes(const ReadableFile& file, uint64_t offset, uint64_t count, const std::string& path) {
  std::string bytes(count, '\0');
  bytes.resize(file.read(offset, bytes.data(), bytes.size()));
  if (bytes.size() == count) return bytes;
  throw DataLossError(fmt::format("{}: the file ends at {}", path, offset + bytes.size()));
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t file_size, const std::string& path) {
  SafetensorsHeader header = safetensors_from_json(json, path);
  header.data_begin = kLengthBytes + json.size();
  std::sort(header.tensors.begin(), header.tensors.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_layout(header.tensors, file_size - header.data_begin, path);
  return header;
}

SafetensorsHeader read_safetensors_header(const ReadableFile& file, const std::string& path) {
  const uint64_t size = file.size();
  const std::string length = read_bytes(file, 0, std::min(size, kLengthBytes), path);
  const std::string json = read_bytes(file, kLengthBytes, header_bytes(length, size, path), path);
  return parse_safetensors_header(json, size, path);
}

SafetensorsHeader read_safetensors_header(const std::string& path, FileSystem& files) {
  return read_safetensors_header(*files.open(path), path);
}

std::string format_safetensors_header(const SafetensorsHeader& header, const std::string& path) {
  std::string json = safetensors_to_json(header, path);
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (json.size() > kMaxSafetensorsHeader) {
    throw InvalidArgumentError(
        fmt::format("{}: the header of {} tensors takes {} bytes, but readers accept at most {}: leave some out, or "
                    "write several files",
                    path, header.tensors.size(), json.size(), kMaxSafetensorsHeader));
  }
  std::string bytes;
  wire::append(bytes, static_cast<uint64_t>(json.size()));
  return bytes + json;
}

std::optional<DType> safetensors_dtype(std::string_view name) {
  const FormatDType* dtype = named_dtype(name);
  return dtype == nullptr ? std::nullopt : std::optional(dtype->dtype);
}

const char* safetensors_dtype_name(int dtype) {
  const FormatDType* found = numbered_dtype(dtype);
  return found == nullptr ? nullptr : found->name;
}

int safetensors_layout_rank(DType dtype) {
  return static_cast<int>(numbered_dtype(dtype) - std::begin(kDTypes));
}

}  // namespace longhaul
