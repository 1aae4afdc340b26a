#include "longhaul/session/task_snapshots.h"

#include <algorithm>
#include <cstring>

namespace longhaul {

Tensor sample_of(const Tensor& value) {
  constexpr int64_t kMost = ValueOnTask::kMostSampled;
  if (value.dtype() == kString) return Tensor(kString, Shape{0});
  const int64_t count = std::min(value.num_elements(), kMost);
  const size_t size = dtype_size(value.dtype());
  Tensor sample(value.dtype(), count == value.num_elements() ? value.shape() : Shape{count});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = count == value.num_elements() ? i : i * (value.num_elements() - 1) / (kMost - 1);
    std::memcpy(static_cast<char*>(sample.mutable_data()) + static_cast<size_t>(i) * size,
                static_cast<const char*>(value.data()) + static_cast<size_t>(from) * size, size);
  }
  return sample;
}

}  // namespace longhaul
