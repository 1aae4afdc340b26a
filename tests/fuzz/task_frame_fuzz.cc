// A byte, the size of the pieces in which it arrives, and a frame of two tasks: what is read can be written again.
#include <algorithm>
#include <cstdlib>

#include "longhaul/cluster/transport/task_frame.h"
#include "tests/fuzz/input.h"

namespace {

using namespace longhaul;

Slices in_pieces(const std::string& bytes, size_t size) {
  Slices slices;
  for (size_t at = 0; at < bytes.size(); at += size) {
    slices.push_back({std::string_view(bytes).substr(at, size), nullptr});
  }
  return slices;
}

// The memory of what was read is in proportion to the bytes.
void check_size(const TaskFrame& frame, size_t bytes) {
  constexpr size_t kMostPerByte = 40;
  if (frame.message.tensor_bytes() > kMostPerByte * bytes) std::abort();
}

void write_and_read(const TaskFrame& frame) {
  const TaskFrame again = read_frame(write_frame(frame), "itself");
  if (again.message.header != frame.message.header) std::abort();
  if (again.message.tensors.size() != frame.message.tensors.size()) std::abort();
  for (size_t i = 0; i < again.message.tensors.size(); ++i) {
    if (!identical(again.message.tensors[i], frame.message.tensors[i])) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const size_t piece = std::max<size_t>(input.byte(), 1);
  const std::string bytes = input.rest();
  try {
    const TaskFrame frame = read_frame(in_pieces(bytes, piece), "the fuzzer");
    check_size(frame, bytes.size());
    write_and_read(frame);
  } catch (const Error&) {
  }
  return 0;
}
