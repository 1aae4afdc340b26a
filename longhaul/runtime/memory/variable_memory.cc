#include "longhaul/runtime/memory/variable_memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/mutex.h"
#include "longhaul/runtime/memory/memory_region.h"

namespace longhaul {
namespace {

constexpr uint64_t kKeptWithoutSavers = 64 << 20;

size_t whole_pages(size_t bytes) {
  return (bytes + VariableMemory::kAlignment - 1) / VariableMemory::kAlignment * VariableMemory::kAlignment;
}

}  // namespace

class VariableMemory::Pool {
 public:
  explicit Pool(uint64_t limit) : limit_(limit) {}

  void set_on_release(std::function<void()> on_release) { on_release_ = std::move(on_release); }
  void released() const {
    if (on_release_) on_release_();
  }

  // What a tensor's storage has for a context.
  struct Block {
    std::shared_ptr<Pool> pool;
    std::optional<MemoryRegion> region;  // of the host
    at::Tensor on_device;                // of libtorch's allocator for the device, which keeps free memory itself
    size_t bytes() const { return region ? region->bytes() : on_device.storage().nbytes(); }
  };
  static void let_go(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    if (block->region) {
      block->pool->take_back(*std::move(block->region));
    } else {
      block->pool->count_on_device(-static_cast<int64_t>(block->bytes()));
      block->on_device.reset();
    }
    block->pool->released();
  }
  // nullptr: libtorch's memory, or somebody else's.
  static const Block* block_of(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return nullptr;
    const c10::DataPtr& data = tensor.storage().data_ptr();
    return data.get_deleter() == &let_go ? static_cast<const Block*>(data.get_context()) : nullptr;
  }

  MemoryRegion take(size_t bytes) EXCLUDES(mutex_) {
    std::optional<MemoryRegion> region = take_free(bytes);
    if (!region) region.emplace(bytes);
    if (region->data() == nullptr)
      throw ResourceExhaustedError(fmt::format("out of memory for a buffer of {} bytes", bytes));
    std::vector<MemoryRegion> surplus;  // unmapped after the lock
    const MutexLock lock(mutex_);
    in_tensors_ += bytes;
    if (free_ > most_free()) trim(&surplus);
    return *std::move(region);
  }

  void count_on_device(int64_t bytes) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    in_tensors_ += static_cast<uint64_t>(bytes);
  }

  void replaced(size_t before, size_t now) EXCLUDES(mutex_) {
    std::vector<MemoryRegion> surplus;
    const MutexLock lock(mutex_);
    variables_ += now - before;
    if (now > 0) ++of_size_[now].variables;
    if (before > 0) --of_size_[before].variables;
    trim(&surplus);
  }

  void add_keepers(int count) EXCLUDES(mutex_) {
    std::vector<MemoryRegion> surplus;
    const MutexLock lock(mutex_);
    keepers_ += count;
    trim(&surplus);
  }

  // The size of a buffer that may be kept and is not there.
  std::optional<size_t> wanted() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (const auto& [bytes, size] : of_size_) {
      if (size.free.size() < size.variables && free_ + bytes <= most_free()) return bytes;
    }
    return std::nullopt;
  }

  void add_free(MemoryRegion region) EXCLUDES(mutex_) {
    std::vector<MemoryRegion> surplus;
    const MutexLock lock(mutex_);
    keep(std::move(region), &surplus);
  }

  uint64_t variables() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return variables_;
  }
  uint64_t beyond() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return in_tensors_ - variables_;
  }
  uint64_t bytes_free() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return free_;
  }

 private:
  struct OfSize {
    size_t variables = 0;
    std::vector<MemoryRegion> free;
  };

  std::optional<MemoryRegion> take_free(size_t bytes) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = of_size_.find(bytes);
    if (found == of_size_.end() || found->second.free.empty()) return std::nullopt;
    MemoryRegion region = std::move(found->second.free.back());
    found->second.free.pop_back();
    free_ -= bytes;
    return region;
  }

  void take_back(MemoryRegion region) EXCLUDES(mutex_) {
    std::vector<MemoryRegion> surplus;
    const MutexLock lock(mutex_);
    in_tensors_ -= region.bytes();
    keep(std::move(region), &surplus);
  }

  void keep(MemoryRegion region, std::vector<MemoryRegion>* surplus) REQUIRES(mutex_) {
    OfSize& size = of_size_[region.bytes()];
    if (size.free.size() >= size.variables || free_ + region.bytes() > most_free()) {
      surplus->push_back(std::move(region));
    } else {
      free_ += region.bytes();
      size.free.push_back(std::move(region));
    }
  }

  uint64_t most_free() const REQUIRES(mutex_) {
    const uint64_t beyond = in_tensors_ - variables_;
    return std::min(limit_ - std::min(limit_, beyond), keepers_ > 0 ? UINT64_MAX : kKeptWithoutSavers);
  }

  void trim(std::vector<MemoryRegion>* surplus) REQUIRES(mutex_) {
    for (auto it = of_size_.begin(); it != of_size_.end();) {
      auto& [bytes, size] = *it;
      while (!size.free.empty() && (size.free.size() > size.variables || free_ > most_free())) {
        free_ -= bytes;
        surplus->push_back(std::move(size.free.back()));
        size.free.pop_back();
      }
      it = size.variables == 0 ? of_size_.erase(it) : std::next(it);
    }
  }

  const uint64_t limit_;
  std::function<void()> on_release_;
  mutable Mutex mutex_;
  std::unordered_map<size_t, OfSize> of_size_ GUARDED_BY(mutex_);  // by bytes, in whole pages
  int keepers_ GUARDED_BY(mutex_) = 0;
  uint64_t variables_ GUARDED_BY(mutex_) = 0;   // bytes, as the next two
  uint64_t in_tensors_ GUARDED_BY(mutex_) = 0;  // the variables' among them
  uint64_t free_ GUARDED_BY(mutex_) = 0;
};

VariableMemory::VariableMemory(uint64_t limit) : pool_(std::make_shared<Pool>(limit)) {}

at::Tensor VariableMemory::make(at::IntArrayRef sizes, at::ScalarType dtype) const {
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * c10::elementSize(dtype);
  if (bytes < kSmallest) return at::empty(sizes, dtype);
  auto block = std::make_unique<Pool::Block>(Pool::Block{pool_, pool_->take(whole_pages(bytes)), {}});
  void* data = block->region->data();
  return at::for_blob(data, sizes).context(block.release(), &Pool::let_go).options(dtype).make_tensor();
}

at::Tensor VariableMemory::make_like(const at::Tensor& tensor) const {
  if (tensor.is_cpu()) return make(tensor.sizes(), tensor.scalar_type());
  return adopt(at::empty(tensor.sizes(), at::TensorOptions(tensor.device()).dtype(tensor.scalar_type())));
}

at::Tensor VariableMemory::adopt(const at::Tensor& tensor) const {
  const size_t bytes = static_cast<size_t>(tensor.numel()) * tensor.element_size();
  if (bytes < kSmallest) return tensor;
  auto block = std::make_unique<Pool::Block>(Pool::Block{pool_, std::nullopt, tensor});
  pool_->count_on_device(static_cast<int64_t>(block->bytes()));
  return at::for_blob(tensor.data_ptr(), tensor.sizes())
      .context(block.release(), &Pool::let_go)
      .options(tensor.options())
      .target_device(tensor.device())
      .make_tensor();
}

bool VariableMemory::accepts(const at::Tensor& tensor) const {
  if (static_cast<size_t>(tensor.numel()) * tensor.element_size() < kSmallest) return tensor.storage().resizable();
  const Pool::Block* block = Pool::block_of(tensor);
  return block != nullptr && block->pool == pool_;
}

void VariableMemory::replaced(const at::Tensor& before, const at::Tensor& now) const {
  const Pool::Block* old_block = Pool::block_of(before);
  const Pool::Block* new_block = Pool::block_of(now);
  const size_t old_bytes = old_block == nullptr ? 0 : old_block->bytes();
  const size_t new_bytes = new_block == nullptr ? 0 : new_block->bytes();
  if (old_bytes == new_bytes) return;
  pool_->replaced(old_bytes, new_bytes);
  if (new_bytes > old_bytes) pool_->released();
}

void VariableMemory::set_on_release(std::function<void()> on_release) const {
  pool_->set_on_release(std::move(on_release));
}

void VariableMemory::add_keeper() const {
  pool_->add_keepers(1);
}

void VariableMemory::remove_keeper() const {
  pool_->add_keepers(-1);
}

void VariableMemory::prepare(const std::function<bool()>& stop) const {
  while (const std::optional<size_t> bytes = pool_->wanted()) {
    MemoryRegion region(*bytes);
    if (region.data() == nullptr || !region.touch(stop)) return;
    pool_->add_free(std::move(region));
  }
}

uint64_t VariableMemory::bytes_of_variables() const {
  return pool_->variables();
}

uint64_t VariableMemory::bytes_beyond() const {
  return pool_->beyond();
}

uint64_t VariableMemory::bytes_free() const {
  return pool_->bytes_free();
}

}  // namespace longhaul
