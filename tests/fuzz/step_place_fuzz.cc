// What another task answers to LookAtStep: a LookAtStepReply. Its text for the log is short, and on one line.
#include <cstdlib>

#include "longhaul/cluster/master/slow_step.h"
#include "longhaul/cluster/transport/message.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  fuzz::Input input(data, size);
  try {
    const auto reply = header_of<proto::LookAtStepReply>({.header = input.rest()}, "LookAtStep");
    const std::string text = place_text("/job:ps/replica:0/task:0", reply);
    if (text.empty() || text.size() > 5000 || text.find('\n') != std::string::npos) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
