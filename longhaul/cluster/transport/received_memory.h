#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The memory of tensors that come from other tasks. New memory costs a page fault for each 4 KiB, which takes longer
// than the network does; so the memory of large tensors is kept when the last that refers to it lets it go, for the
// next one of about its size: a step receives the same as the step before. From 2 MiB on it consists of huge pages, as
// far as the system has them.
//
// Any thread. The memory of a tensor may outlive this.
class ReceivedMemory {
 public:
  static constexpr size_t kSmallest = size_t{64} << 10;  // the memory of smaller ones is the heap's
  static constexpr uint64_t kMostKept = uint64_t{64} << 20;

  // `most_kept`: bytes that no tensor has. Above, what was let go first returns to the system.
  explicit ReceivedMemory(uint64_t most_kept = kMostKept);
  // An uninitialised tensor. ResourceExhaustedError: no memory.
  Tensor make(DType dtype, const Shape& shape) const;
  uint64_t bytes_kept() const;

 private:
  class Pool;
  const std::shared_ptr<Pool> pool_;
};

// That of this process: what a transport takes in goes there.
Tensor new_received_tensor(DType dtype, const Shape& shape);

}  // namespace longhaul
