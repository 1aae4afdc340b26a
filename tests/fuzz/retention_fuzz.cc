// The text of a `checkpoint.retention` file. Names without line breaks come out, so that they can be written again.
#include "longhaul/checkpoint/retention_file.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  testing::MemoryFileSystem files;
  files.put(retention_path("d"), {reinterpret_cast<const char*>(data), size});
  for (const auto& [prefix, kept] : read_retention(files, "d")) {
    if (prefix.find('\n') != prefix.npos) __builtin_trap();
  }
  return 0;
}
