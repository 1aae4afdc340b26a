#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>

namespace longhaul::fake_device {

// The bytes of a fake device's tensor as a tensor of the host, for kernels alone: it does not keep the memory.
at::Tensor on_host(const at::Tensor& tensor);

// Any operator without a kernel of its own: it finds out the results' sizes on meta tensors, and enqueues the CPU's
// kernel on the current stream. Where libtorch cannot know the sizes without the values, the host waits first; where a
// GPU would not have to, such a wait is not counted.
void call_deferred(const c10::OperatorHandle& op, torch::jit::Stack* stack);

struct CallCounts {
  int64_t operators = 0;
  int64_t waits = 0;
};
CallCounts call_counts();
void reset_call_counts();
void count_wait();

}  // namespace longhaul::fake_device
