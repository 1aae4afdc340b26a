#include "longhaul/testing/fake_device/fake_memory.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "longhaul/testing/fake_device/fake_streams.h"

namespace longhaul::fake_device {
namespace {

constexpr size_t kArena = size_t{16} << 30;
constexpr size_t kPiece = 512;
constexpr int kNaN = 0xFF;

size_t whole_pieces(size_t bytes) {
  return std::max<size_t>((bytes + kPiece - 1) / kPiece, 1) * kPiece;
}

char* reserve(int protection) {
  void* place = mmap(nullptr, kArena, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(place != MAP_FAILED, "fake device: no address space for its memory");
  return static_cast<char*>(place);
}

// What a storage has beside its address: how it is freed.
struct Block {
  char* address;
  size_t bytes;
  c10::Stream stream;
};

void free_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  FakeStreams::instance().enqueue(
      block->stream, [address = block->address, bytes = block->bytes] { FakeMemory::instance().free(address, bytes); });
}

c10::DataPtr allocate_on_current_device(size_t bytes) {
  const c10::Stream stream = FakeStreams::instance().current();
  if (bytes == 0) return {nullptr, stream.device()};
  char* address = FakeMemory::instance().allocate(bytes);
  return {address, new Block{address, bytes, stream}, &free_block, stream.device()};
}

// libtorch 1.13 has one of the two allocate(), 2.x has the other, and copy_data(): none can say `override`.
class FakeAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) const { return allocate_on_current_device(bytes); }
  c10::DataPtr allocate(size_t bytes) { return allocate_on_current_device(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const {
    const FakeMemory& memory = FakeMemory::instance();
    FakeStreams::instance().enqueue(FakeStreams::instance().current(), [&memory, to, from, bytes] {
      std::memcpy(memory.bytes_of(to), memory.bytes_of(from), bytes);
    });
  }
};

}  // namespace

FakeMemory& FakeMemory::instance() {
  static auto* memory = new FakeMemory();
  return *memory;
}

FakeMemory::FakeMemory() : addresses_(reserve(PROT_NONE)), bytes_(reserve(PROT_READ | PROT_WRITE)) {}

char* FakeMemory::allocate(size_t bytes) {
  const size_t size = whole_pieces(bytes);
  const std::lock_guard lock(mutex_);
  const bool fails = until_failure_ > 0 && --until_failure_ == 0;
  if (fails || kArena - used_ < size) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "fake device out of memory. Tried to allocate ", bytes, " bytes");
  }
  char* address = addresses_ + used_;
  if (const auto found = free_.find(size); found != free_.end()) {
    address = found->second;
    free_.erase(found);
  } else {
    used_ += size;
    std::memset(bytes_of(address), kNaN, size);
  }
  allocated_ += static_cast<int64_t>(size);
  return address;
}

void FakeMemory::free(char* address, size_t bytes) {
  const size_t size = whole_pieces(bytes);
  std::memset(bytes_of(address), kNaN, size);
  const std::lock_guard lock(mutex_);
  free_.emplace(size, address);
  allocated_ -= static_cast<int64_t>(size);
}

char* FakeMemory::bytes_of(const void* address) const {
  return address == nullptr ? nullptr : bytes_ + (static_cast<const char*>(address) - addresses_);
}

int64_t FakeMemory::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

void FakeMemory::fail_allocation(int64_t n) {
  const std::lock_guard lock(mutex_);
  until_failure_ = n;
}

c10::Allocator& fake_allocator() {
  static auto* allocator = new FakeAllocator();
  return *allocator;
}

}  // namespace longhaul::fake_device
