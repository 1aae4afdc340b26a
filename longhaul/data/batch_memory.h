#pragma once

#include <memory>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Memory for batches, aligned like that of every tensor. The memory of a batch is returned when its last handle is
// dropped, on any thread, and is reused for a later batch: large blocks fresh from the system cost a page fault for
// every 4 KiB. At most as many bytes are kept free as were in use at one time; they are freed once this object and the
// last tensor are destroyed. A handle: copies share the memory. Any thread.
class BatchMemory {
 public:
  BatchMemory();

  // A tensor whose bytes are uninitialised (strings: empty). Throws as Tensor's constructor does.
  Tensor make(DType dtype, Shape shape) const;

  // The bytes kept for later batches.
  int64_t bytes_free() const;

 private:
  class Pool;

  std::shared_ptr<Pool> pool_;
};

}  // namespace longhaul
