#include "longhaul/host/host_kernel.h"

namespace longhaul {

HostKernelTable reader_host_kernels() {
  return {};
}

}  // namespace longhaul
