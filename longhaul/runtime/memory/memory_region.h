#pragma once

#include <cstddef>
#include <functional>

namespace longhaul {

// Memory of the system's, in whole pages, until the end of this object; in huge pages as far as the system has them,
// its own or shared with others (SharedPages). A direct read or write of 1 GiB then names 512 pages to the device
// instead of 262,144, and the first use of so much costs 512 page faults. Empty if there was no memory.
class MemoryRegion {
 public:
  explicit MemoryRegion(size_t bytes);  // a multiple of kPage
  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  ~MemoryRegion();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Has each of its pages used for the first time, one by one, so that nobody waits long for the process's memory map.
  // `stop` is asked now and then; false: it said so before the end.
  bool touch(const std::function<bool()>& stop) const;

 private:
  void* data_;
  size_t bytes_;
};

}  // namespace longhaul
