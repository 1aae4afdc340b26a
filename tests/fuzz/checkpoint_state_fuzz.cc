// The text of a `checkpoint` state file.
#include "longhaul/checkpoint/checkpoint_state.h"
#include "longhaul/checkpoint/latest_checkpoint.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  testing::MemoryFileSystem files;
  files.put("d/checkpoint", {reinterpret_cast<const char*>(data), size});
  const ReadCheckpointState read = read_checkpoint_state(files, "d");
  if (read.status == ReadCheckpointState::Status::kMissing) __builtin_trap();
  try {
    if (read.status == ReadCheckpointState::Status::kRead) make_checkpoint_state("d", read.state);
    latest_checkpoint(files, "d");
  } catch (const Error&) {
  }
  return 0;
}
