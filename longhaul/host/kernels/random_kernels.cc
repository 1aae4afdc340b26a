#include <fmt/format.h>

#include "longhaul/graph/builtin/random_state.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"
#include "longhaul/host/queues/random_stream.h"

namespace longhaul {
namespace {

std::shared_ptr<RandomStream> stream_of(const HostCall& call) {
  return random_stream(colocated_operation(call.op), call.own);
}

void random_state(HostCall& call) {
  call.results.push_back(as_tensor(stream_of(call)->state()));
}

void restore_random_state(HostCall& call) {
  const Tensor& state = call.inputs[0];
  if (state.num_elements() == 0) return stream_of(call)->start_over();
  stream_of(call)->restore(random_state_of(state));
}

}  // namespace

HostKernelTable random_host_kernels() {
  return {{{"RandomState", named_errors<random_state>}, {"RestoreRandomState", named_errors<restore_random_state>}},
          {}};
}

}  // namespace longhaul
