#include "benchmarks/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace longhaul::bench {

Descriptor::Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
  check(fd_ >= 0, "open " + path);
}

Descriptor::~Descriptor() {
  ::close(fd_);
}

namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

FreshMemory::FreshMemory(size_t bytes)
    : mapped_(bytes + kHugePage),
      map_(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  check(map_ != MAP_FAILED, "get memory");
  const size_t over = reinterpret_cast<uintptr_t>(map_) % kHugePage;
  data_ = static_cast<char*>(map_) + (kHugePage - over) % kHugePage;
  madvise(data_, bytes, MADV_HUGEPAGE);
}

FreshMemory::~FreshMemory() {
  munmap(map_, mapped_);
}

void check(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("cannot " + what);
}

void sync_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  check(::fsync(file.fd()) == 0, "sync " + path);
}

void make_cold(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  check(::fsync(file.fd()) == 0 && ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) == 0,
        "drop from the cache: " + path);
}

}  // namespace longhaul::bench
