#include "longhaul/runtime/plan/needed_graph.h"

#include "longhaul/host/kernels/host_kernel.h"

namespace longhaul {

NeededGraph::NeededGraph(const Session::Request& request) : order_(request) {
  for (const Operation& op : operations()) {
    if (find_host_kernel(op.type()) != nullptr) continue;
    for (const Output& input : op.inputs()) for_libtorch_.insert(input);
  }
}

}  // namespace longhaul
