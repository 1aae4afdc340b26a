#include "longhaul/runtime/threads.h"

#include <ATen/Parallel.h>

extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace longhaul {

void set_intra_op_threads(int threads) {
  if (threads <= 0) return;
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(threads);
}

}  // namespace longhaul
