#include "longhaul/host/host_kernel.h"

namespace longhaul {

HostKernelTable queue_host_kernels() {
  return {};
}

}  // namespace longhaul
