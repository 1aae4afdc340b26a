// LevelDB's table format: a byte (1: repair the checksums), the file.
#include "longhaul/checkpoint/table/table.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/repair.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  const bool repaired = input.byte() & 1;
  std::string contents = input.rest();
  if (repaired) fuzz::repair_table(contents);
  testing::MemoryFileSystem files;
  files.put("table", contents);
  try {
    Table::is_table(*files.open("table"));
    const Table table(files.open("table"), "table");
    std::string last;
    for (auto cursor = table.seek(""); cursor.valid(); cursor.next()) last = cursor.key();
    for (auto cursor = table.seek(last); cursor.valid(); cursor.next()) continue;
  } catch (const Error&) {
  }
  return 0;
}
