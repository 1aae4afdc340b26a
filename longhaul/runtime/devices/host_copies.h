#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace longhaul {

// The tensor in host memory, when it is there: the host waits for what its device has to do before. InternalError: the
// device has failed, perhaps in an operation before (device_error.h). ResourceExhaustedError: no memory.
at::Tensor copy_to_host(const at::Tensor& tensor);

// Replaces those tensors that are on other devices by such copies. It waits once for each device, unless they are too
// many bytes for pinned memory. Undefined ones stay. A tensor must not be there twice.
void copy_all_to_host(const std::vector<at::Tensor*>& tensors);

// The same of tensors that nobody writes to any more, apart from what their devices have to do from now on: steps do
// not wait for these copies. Where a device has no further streams, they do.
void copy_snapshot_to_host(const std::vector<at::Tensor*>& tensors);

}  // namespace longhaul
