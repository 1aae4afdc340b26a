// The text of a `checkpoint.retention` file. Only names of files in its directory come out, so that nothing elsewhere
// is removed for one, and they can be written again.
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  testing::MemoryFileSystem files;
  files.put(retention_path("d"), {reinterpret_cast<const char*>(data), size});
  for (const auto& [prefix, kept] : read_retention(files, "d")) {
    const bool is_here = directory_name(prefix) == "d" && base_name(prefix) != ".." && base_name(prefix) != ".";
    if (!is_here || prefix.find_first_of(std::string_view("\n\0", 2)) != prefix.npos) __builtin_trap();
  }
  return 0;
}
