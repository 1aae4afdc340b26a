// The number of a run, and then the text of a `run.journal.crash` file. A signal that comes out is one, and the file
// is that run's.
#include <fmt/format.h>

#include <csignal>

#include "longhaul/testing/memory_file_system.h"
#include "longhaul/train/journal/crash_record.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  testing::MemoryFileSystem files;
  files.put("d/run.journal.crash", text);
  const std::optional<int> signal = read_crash_record(files, "d/run.journal.crash", data[0]);
  if (!signal) return 0;
  if (*signal <= 0 || *signal >= NSIG) __builtin_trap();
  if (!text.starts_with(fmt::format("longhaul crash record 1 run {}\n", data[0]))) __builtin_trap();
  if (read_crash_record(files, "d/run.journal.crash", data[0] + 1)) __builtin_trap();
  return 0;
}
