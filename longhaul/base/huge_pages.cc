#include "longhaul/base/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace longhaul {
namespace {

char* map(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

}  // namespace

char* map_pages(size_t bytes) {
  if (bytes < kHugePage) return map(bytes);
  const auto system_page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t kept = (bytes + system_page - 1) / system_page * system_page;
  const size_t mapped = kept + kHugePage - kPage;
  char* const all = map(mapped);
  if (all == nullptr) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(all) % kHugePage) % kHugePage;
  const size_t after = mapped - before - kept;
  if (before > 0) munmap(all, before);
  if (after > 0) munmap(all + before + kept, after);
  madvise(all + before, bytes, MADV_HUGEPAGE);  // a wish
  return all + before;
}

void unmap_pages(char* data, size_t bytes) {
  munmap(data, bytes);
}

void empty_pages(char* data, size_t bytes) {
  madvise(data, bytes, MADV_DONTNEED);
}

}  // namespace longhaul
