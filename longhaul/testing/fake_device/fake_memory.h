#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace longhaul::fake_device {

// The memory of all fake devices: addresses that the host cannot touch, and at a fixed distance from each the bytes
// that kernels see. Blocks are whole pieces of 512 bytes, and are used again for the same size alone.
class FakeMemory {
 public:
  static FakeMemory& instance();

  // Throws c10::OutOfMemoryError.
  char* allocate(size_t bytes);
  void free(char* address, size_t bytes);

  // Where kernels find what is at `address`.
  char* bytes_of(const void* address) const;

  int64_t allocated() const;
  void fail_allocation(int64_t n);

 private:
  FakeMemory();

  char* addresses_;
  char* bytes_;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  int64_t allocated_ = 0;
  int64_t until_failure_ = 0;
  std::multimap<size_t, char*> free_;
};

// For tensors on the current device. What is freed is used again after what its stream has been told before.
c10::Allocator& fake_allocator();

}  // namespace longhaul::fake_device
