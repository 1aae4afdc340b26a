// TFRecord framing: a byte (1: repair the checksums), the file.
#include "longhaul/io/records/record.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/repair.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const bool repaired = input.byte() & 1;
  std::string contents = input.rest();
  if (repaired) fuzz::repair_records(contents);
  testing::MemoryFileSystem files;
  files.put("records", contents);
  const auto file = files.open("records");
  RecordReader reader(*file, "records");
  try {
    std::string_view payload;
    while (reader.next(payload) == RecordReader::Result::kRecord) {
      if (payload.size() > contents.size()) __builtin_trap();
    }
  } catch (const Error&) {
  }
  return 0;
}
