// A byte of flags, then a safetensors file. With flag 1 the length before the JSON is left out and put right: the JSON
// ends with the first line. Whatever it is, the header is read or refused; and what was read can be written, and read
// again as the same.
#include <algorithm>

#include "longhaul/checkpoint/safetensors/safetensors_header.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/quiet.h"

namespace longhaul::fuzz {
namespace {

constexpr size_t kLengthBytes = 8;

// The file with the length of its JSON.
std::string with_length(std::string_view json_and_data) {
  const std::string_view json = json_and_data.substr(0, json_and_data.find('\n'));
  std::string file;
  for (int shift = 0; shift < 64; shift += 8) file.push_back(static_cast<char>(json.size() >> shift));
  return file.append(json).append(json_and_data.substr(std::min(json.size() + 1, json_and_data.size())));
}

SafetensorsHeader read(const std::string& file) {
  testing::MemoryFileSystem files;
  files.put("x", file);
  return read_safetensors_header("x", files);
}

void check_places(const SafetensorsHeader& header, size_t file_size) {
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    if (entry.begin != end || entry.end < entry.begin || !entry.shape.fully_defined()) __builtin_trap();
    end = entry.end;
  }
  if (header.data_begin + end != file_size) __builtin_trap();
}

void read_twice(const std::string& file) {
  SafetensorsHeader header = read(file);
  check_places(header, file.size());
  // The name of a dtype that the format does not have is text from the file; it is not written again.
  for (const SafetensorsEntry& entry : header.tensors) {
    if (!safetensors_dtype(entry.dtype)) return;
  }
  const std::string again = format_safetensors_header(header, "x");
  const size_t data_bytes = file.size() - static_cast<size_t>(header.data_begin);
  header.data_begin = again.size();
  if (again.size() % kLengthBytes != 0 || read(again + std::string(data_bytes, 'x')) != header) __builtin_trap();
}

}  // namespace
}  // namespace longhaul::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const bool repair = input.byte() & 1;
  const std::string rest = input.rest();
  try {
    fuzz::read_twice(repair ? fuzz::with_length(rest) : rest);
  } catch (const Error&) {
  }
  return 0;
}
