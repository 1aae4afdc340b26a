// The text of a `checkpoint` state file, and what it says of the checkpoints in its directory.
#include "longhaul/checkpoint/directory/named_checkpoints.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
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
    const NamedCheckpoints named = named_checkpoints(files, "d");
    for (const auto* names : {&named.kept, &named.marked_for_deletion}) {
      for (const std::string& name : *names) {
        if (name.find_first_of(std::string_view("/\0", 2)) != name.npos) __builtin_trap();
      }
    }
    checkpoints_without_index(files, "d");
  } catch (const Error&) {
  }
  return 0;
}
