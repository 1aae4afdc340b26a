#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <functional>

namespace longhaul {

// Host memory of the tensor's sizes and dtype for a copy of it. For a tensor on another device it is pinned, so that
// the host does not wait for the copy; where that is not to be had, it is ordinary memory, and whoever copies waits.
// The log says so once for each kind of device. Any thread.
at::Tensor host_memory_for(const at::Tensor& tensor);

// Makes known how host memory is pinned for a kind of device that libtorch cannot pin it for itself. Null: no longer.
// Any thread.
using PinnedMemory = std::function<at::Tensor(at::IntArrayRef sizes, at::ScalarType dtype)>;
void register_pinned_memory(c10::DeviceType type, PinnedMemory pinned);

}  // namespace longhaul
