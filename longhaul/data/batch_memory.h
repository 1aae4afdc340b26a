#pragma once

#include <memory>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Memory for batches, aligned like that of every tensor. The memory of a batch is returned when its last handle is
// dropped, on any thread, and is reused for a later batch, because new large blocks from the system cost a page fault
// for every 4 KiB. At most as many bytes are kept free as were in use at one time. They are freed once this object and
// the last tensor are destroyed. A BatchMemory is a handle: copies share the memory. Any thread may call.
class BatchMemory {
 public:
  BatchMemory();

  // Returns a tensor with uninitialised bytes (strings: empty). Throws what Tensor's constructor throws.
  Tensor make(DType dtype, Shape shape) const;

  // The bytes kept for later batches.
  int64_t bytes_free() const;

 private:
  class Pool;

  std::shared_ptr<Pool> pool_;
};

}  // namespace longhaul
