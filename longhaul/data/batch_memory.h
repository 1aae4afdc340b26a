#pragma once

#include <memory>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Memory for batches, aligned as that of every tensor. What a batch had goes back when its last handle is dropped, on
// whatever thread that is, and a later batch gets it: large blocks that come from the system anew each time cost a page
// fault for every 4 KiB. It keeps at most as many bytes free as were in use at one time, and frees them after its own
// end and that of the last tensor. A handle: copies share the memory. Any thread.
class BatchMemory {
 public:
  BatchMemory();

  // A tensor whose bytes are not initialised (strings: empty). Errors as of Tensor's constructor.
  Tensor make(DType dtype, Shape shape) const;

  // What is kept for the next batches.
  int64_t bytes_free() const;

 private:
  class Pool;

  std::shared_ptr<Pool> pool_;
};

}  // namespace longhaul
