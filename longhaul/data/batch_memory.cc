#include "longhaul/data/batch_memory.h"

#include <algorithm>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

class BatchMemory::Pool {
 public:
  // An uninitialised tensor of bytes, whose memory was free before or is new.
  Tensor take(int64_t bytes) EXCLUDES(mutex_) {
    Tensor block = find_free(bytes);
    if (!block.defined()) block = Tensor(kUInt8, {bytes});
    const MutexLock lock(mutex_);
    in_use_ += bytes;
    most_in_use_ = std::max(most_in_use_, in_use_);
    return block;
  }

  void give_back(Tensor block) EXCLUDES(mutex_) {
    std::vector<Tensor> surplus;  // freed after the lock
    const MutexLock lock(mutex_);
    in_use_ -= block.num_elements();
    bytes_free_ += block.num_elements();
    free_.push_back(std::move(block));
    while (bytes_free_ > most_in_use_) {
      bytes_free_ -= free_.front().num_elements();
      surplus.push_back(std::move(free_.front()));
      free_.erase(free_.begin());
    }
  }

  int64_t bytes_free() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return bytes_free_;
  }

 private:
  Tensor find_free(int64_t bytes) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found =
        std::ranges::find_if(free_, [bytes](const Tensor& block) { return block.num_elements() == bytes; });
    if (found == free_.end()) return {};
    Tensor block = std::move(*found);
    free_.erase(found);
    bytes_free_ -= bytes;
    return block;
  }

  mutable Mutex mutex_;
  std::vector<Tensor> free_ GUARDED_BY(mutex_);  // the longest unused first
  int64_t bytes_free_ GUARDED_BY(mutex_) = 0;
  int64_t in_use_ GUARDED_BY(mutex_) = 0;
  int64_t most_in_use_ GUARDED_BY(mutex_) = 0;
};

BatchMemory::BatchMemory() : pool_(std::make_shared<Pool>()) {}

Tensor BatchMemory::make(DType dtype, Shape shape) const {
  int64_t bytes;
  if (dtype_size(dtype) == 0 || shape.num_elements() < 0 ||
      __builtin_mul_overflow(shape.num_elements(), static_cast<int64_t>(dtype_size(dtype)), &bytes)) {
    return Tensor(dtype, std::move(shape));  // strings, or an error
  }
  Tensor block = pool_->take(bytes);
  std::shared_ptr<const void> owner(block.data(),
                                    [block, pool = pool_](const void*) mutable { pool->give_back(std::move(block)); });
  return Tensor::wrap(dtype, std::move(shape), block.data(), std::move(owner));
}

int64_t BatchMemory::bytes_free() const {
  return pool_->bytes_free();
}

}  // namespace longhaul
