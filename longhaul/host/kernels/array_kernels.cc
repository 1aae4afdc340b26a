#include "longhaul/host/host_kernel.h"

namespace longhaul {

HostKernelTable array_host_kernels() {
  return {};
}

}  // namespace longhaul
