#include "longhaul/cluster/transport/received_memory.h"

#include <fmt/format.h>

#include <list>

#include "longhaul/base/error.h"
#include "longhaul/base/huge_pages.h"
#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

struct Region {
  char* data = nullptr;
  size_t bytes = 0;
};

// A region for a tensor may be larger by this part of the tensor's size.
constexpr size_t kSpare = 8;

}  // namespace

class ReceivedMemory::Pool : public std::enable_shared_from_this<Pool> {
 public:
  explicit Pool(uint64_t most_kept) : most_kept_(most_kept) {}
  ~Pool() {
    for (const Region& region : free_) unmap_pages(region.data, region.bytes);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::shared_ptr<const void> take(size_t bytes) {
    const size_t needed = (bytes + kPage - 1) / kPage * kPage;
    Region region = take_free(needed);
    if (region.data == nullptr) region = {map_pages(needed), needed};
    if (region.data == nullptr)
      throw ResourceExhaustedError(fmt::format("out of memory for a received tensor of {} bytes", bytes));
    return {region.data, [pool = shared_from_this(), region](const void*) { pool->give_back(region); }};
  }

  uint64_t kept() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return kept_;
  }

 private:
  Region take_free(size_t needed) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (at->bytes < needed || at->bytes > needed + needed / kSpare) continue;
      const Region region = *at;
      kept_ -= region.bytes;
      free_.erase(at);
      return region;
    }
    return {};
  }

  // What is let go last is in the processor's cache, and is taken first.
  void give_back(const Region& region) EXCLUDES(mutex_) {
    std::list<Region> dropped;  // unmapped without the lock
    {
      MutexLock lock(mutex_);
      free_.push_front(region);
      kept_ += region.bytes;
      while (kept_ > most_kept_) {
        kept_ -= free_.back().bytes;
        dropped.splice(dropped.end(), free_, std::prev(free_.end()));
      }
    }
    for (const Region& old : dropped) unmap_pages(old.data, old.bytes);
  }

  const uint64_t most_kept_;
  mutable Mutex mutex_;
  std::list<Region> free_ GUARDED_BY(mutex_);
  uint64_t kept_ GUARDED_BY(mutex_) = 0;
};

ReceivedMemory::ReceivedMemory(uint64_t most_kept) : pool_(std::make_shared<Pool>(most_kept)) {}

Tensor ReceivedMemory::make(DType dtype, const Shape& shape) const {
  const int64_t count = shape.num_elements();
  const size_t element = is_known_dtype(dtype) && dtype != kString ? dtype_size(dtype) : 0;
  int64_t bytes = 0;
  const bool has_size = count > 0 && !__builtin_mul_overflow(count, static_cast<int64_t>(element), &bytes);
  if (!has_size || static_cast<size_t>(bytes) < kSmallest) return Tensor(dtype, shape);
  const std::shared_ptr<const void> memory = pool_->take(static_cast<size_t>(bytes));
  return Tensor::wrap(dtype, shape, memory.get(), memory);
}

uint64_t ReceivedMemory::bytes_kept() const {
  return pool_->kept();
}

Tensor new_received_tensor(DType dtype, const Shape& shape) {
  static const auto* const memory = new ReceivedMemory;
  return memory->make(dtype, shape);
}

}  // namespace longhaul
