#include "longhaul/runtime/memory/memory_region.h"

#include <utility>

#include "longhaul/base/huge_pages.h"
#include "longhaul/runtime/memory/shared_pages.h"

namespace longhaul {

MemoryRegion::MemoryRegion(size_t bytes)
    : data_(bytes < kHugePage ? SharedPages::of_process().take(bytes) : map_pages(bytes)), bytes_(bytes) {}

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryRegion::~MemoryRegion() {
  if (data_ == nullptr) return;
  if (bytes_ < kHugePage) {
    SharedPages::of_process().give_back(data_, bytes_);
  } else {
    unmap_pages(static_cast<char*>(data_), bytes_);
  }
}

bool MemoryRegion::touch(const std::function<bool()>& stop) const {
  constexpr size_t kPagesBetweenLooks = 256;
  volatile char* data = static_cast<char*>(data_);
  for (size_t page = 0; page * kPage < bytes_; ++page) {
    if (page % kPagesBetweenLooks == 0 && stop()) return false;
    data[page * kPage] = 0;
  }
  return true;
}

}  // namespace longhaul
