// A byte whose lowest bit says which, a byte with the size of the pieces in which it arrives, and a request of a client
// of MasterService, to run a step or a callable: the values that are read can be sent.
#include <algorithm>
#include <cstdlib>

#include "longhaul/cluster/transport/message.h"
#include "longhaul/cluster/wire/run_messages.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/quiet.h"

namespace {

using namespace longhaul;

Slices in_pieces(const std::string& bytes, size_t size) {
  Slices slices;
  for (size_t at = 0; at < bytes.size(); at += size) {
    slices.push_back({std::string_view(bytes).substr(at, size), nullptr});
  }
  return slices;
}

void run_step(const Slices& request) {
  const RunStepCall call = read_run_step(request);
  if (call.feeds.size() != call.values.size()) std::abort();
  const std::string reply = joined(write_run_step(call.feeds, call.values, nullptr));
  proto::master::RunStepResponse response;
  if (!response.ParsePartialFromString(reply)) return;  // a name is not UTF-8
  if (response.tensor_size() != static_cast<int>(call.values.size())) std::abort();
}

void run_callable(const Slices& request) {
  const RunCallableCall call = read_run_callable(request);
  proto::master::RunCallableResponse response;
  if (!response.ParseFromString(joined(write_run_callable(call.values, nullptr)))) std::abort();
  if (response.fetch_size() != static_cast<int>(call.values.size())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool is_callable = (input.byte() & 1) != 0;
  const size_t piece = std::max<size_t>(input.byte(), 1);
  const std::string bytes = input.rest();
  const Slices request = in_pieces(bytes, piece);
  try {
    is_callable ? run_callable(request) : run_step(request);
  } catch (const Error&) {
  }
  return 0;
}
