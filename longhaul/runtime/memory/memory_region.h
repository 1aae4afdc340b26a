#pragma once

#include <cstddef>
#include <functional>

namespace longhaul {

// System memory, in entire pages, for the lifetime of this object; in huge pages if the system has them, either its own
// or shared with others (SharedPages). A direct read or write of 1 GiB then passes 512 pages to the device instead of
// 262,144, and its first use costs 512 page faults. Empty if there was no memory.
class MemoryRegion {
 public:
  explicit MemoryRegion(size_t bytes);  // a multiple of kPage
  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  ~MemoryRegion();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Touches each of its pages, one by one, so that no thread waits long for the process's memory map. `stop` is called
  // now and then; false: it returned true before the end.
  bool touch(const std::function<bool()>& stop) const;

 private:
  void* data_;
  size_t bytes_;
};

}  // namespace longhaul
