#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "longhaul/base/huge_pages.h"

namespace longhaul {

// The buffers of a session's variables. They are page-aligned, so that a checkpoint can be written directly from them
// with O_DIRECT, and a buffer released by the last of its tensors and views may be kept for the next variable of its
// size: new memory from the system costs page faults.
//
// Small tensors are libtorch's as usual; the others are MemoryRegions.
//
// A handle: copies share the memory, and a buffer may outlive them all. Any thread.
class VariableMemory {
 public:
  static constexpr size_t kAlignment = kPage;
  static constexpr size_t kSmallest = 16 << 10;  // smaller ones are libtorch's

  // `limit`: of the bytes kept, and held elsewhere, in addition to the variables'.
  explicit VariableMemory(uint64_t limit = UINT64_MAX);

  // A contiguous, uninitialised tensor, whose bytes Assign takes without a copy. ResourceExhaustedError: no memory.
  at::Tensor make(at::IntArrayRef sizes, at::ScalarType dtype) const;

  // The same on the tensor's device, with its sizes and dtype. On another device than the host it is memory of
  // libtorch's allocator, counted here; free memory is kept there.
  at::Tensor make_like(const at::Tensor& tensor) const;

  // The same bytes as a tensor of make_like(), without a copy: of a contiguous tensor on a device that has its storage
  // for itself.
  at::Tensor adopt(const at::Tensor& tensor) const;

  // Whether a variable may hold these bytes: they come from here, or are few and libtorch's.
  bool accepts(const at::Tensor& tensor) const;

  // A variable holds `now` in place of `before`; either may be undefined. This determines how many buffers are kept.
  void replaced(const at::Tensor& before, const at::Tensor& now) const;

  // While there are keepers, free buffers are kept: one for each variable's, within the limit. Otherwise only a few (64
  // MiB) are kept, and the others return to the system immediately.
  void add_keeper() const;
  void remove_keeper() const;

  // Allocates all those buffers and touches their pages, until `stop` returns true.
  void prepare(const std::function<bool()>& stop) const;

  // Sets a function to call, without holding a lock, whenever bytes_beyond() has decreased. It must be fast, and safe
  // to call after the objects it uses are gone. Set once, before the first tensor is made.
  void set_on_release(std::function<void()> on_release) const;

  uint64_t bytes_of_variables() const;
  uint64_t bytes_beyond() const;  // in tensors other than the variables'
  uint64_t bytes_free() const;

 private:
  class Pool;

  std::shared_ptr<Pool> pool_;
};

}  // namespace longhaul
