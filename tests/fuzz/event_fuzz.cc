// An event file: a byte (1: repair the checksums), the file.
#include "longhaul/events/event_reader.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/repair.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const bool repaired = input.byte() & 1;
  std::string contents = input.rest();
  if (repaired) fuzz::repair_records(contents);
  testing::MemoryFileSystem files;
  files.put("logs/events.out.tfevents.1", contents);
  try {
    for (const std::string& path : event_files("logs", files)) {
      EventReader reader(path, files);
      while (reader.next()) continue;
    }
  } catch (const Error&) {
  }
  return 0;
}
