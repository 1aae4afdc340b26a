#include "longhaul/host/host_kernel.h"

namespace longhaul {

HostKernelTable image_host_kernels() {
  return {};
}

}  // namespace longhaul
