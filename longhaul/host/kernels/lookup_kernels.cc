#include "longhaul/host/host_kernel.h"

namespace longhaul {

HostKernelTable lookup_host_kernels() {
  return {};
}

}  // namespace longhaul
