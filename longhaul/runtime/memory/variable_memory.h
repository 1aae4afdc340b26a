#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "longhaul/base/huge_pages.h"

namespace longhaul {

// The buffers of a session's variables. They begin at a page, so that a checkpoint can be written straight from them
// with O_DIRECT, and a buffer that the last of its tensors and views lets go of may be kept for the next variable of
// its size: memory that comes from the system costs page faults.
//
// Small tensors are libtorch's as ever; the others are MemoryRegions.
//
// A handle: copies share the memory, and a buffer may outlive them all. Any thread.
class VariableMemory {
 public:
  static constexpr size_t kAlignment = kPage;
  static constexpr size_t kSmallest = 16 << 10;  // what is smaller is libtorch's

  // `limit`: of the bytes that are kept, and held by others, beyond the variables'.
  explicit VariableMemory(uint64_t limit = UINT64_MAX);

  // A contiguous tensor, not initialised, of which Assign takes the bytes as they are.
  // ResourceExhaustedError: no memory.
  at::Tensor make(at::IntArrayRef sizes, at::ScalarType dtype) const;

  // Whether a variable may hold these bytes: they come from here, or are few and libtorch's.
  bool accepts(const at::Tensor& tensor) const;

  // A variable holds `now` in place of `before`; either may be undefined. How many buffers are kept follows from this.
  void replaced(const at::Tensor& before, const at::Tensor& now) const;

  // While there are keepers, free buffers are kept: one for each variable's, within the limit. Else only a few (64 MiB)
  // are, and the others go back to the system at once.
  void add_keeper() const;
  void remove_keeper() const;

  // Gets all those buffers and touches their pages, until `stop` says that it is enough.
  void prepare(const std::function<bool()>& stop) const;

  // Calls it, without a lock of its own, whenever bytes_beyond() has become less. It takes little time, and may outlive
  // whatever it needs. Set once, before the first tensor is made.
  void set_on_release(std::function<void()> on_release) const;

  uint64_t bytes_of_variables() const;
  uint64_t bytes_beyond() const;  // in tensors, but not the variables'
  uint64_t bytes_free() const;

 private:
  class Pool;

  std::shared_ptr<Pool> pool_;
};

}  // namespace longhaul
