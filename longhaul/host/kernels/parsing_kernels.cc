#include "longhaul/host/host_kernel.h"

namespace longhaul {

HostKernelTable parsing_host_kernels() {
  return {};
}

}  // namespace longhaul
