#include "longhaul/runtime/freed_memory.h"

#include <cstdlib>
#include <mutex>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace longhaul {

#ifdef __GLIBC__

namespace {

constexpr int kLargestHeapBlock = 32 << 20;   // DEFAULT_MMAP_THRESHOLD_MAX of glibc's malloc.c, on 64 bits
constexpr int kKept = 2 * kLargestHeapBlock;  // as glibc derives it

bool environment_says() {
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

std::once_flag done;

}  // namespace

void keep_freed_memory() {
  std::call_once(done, [] {
    if (environment_says()) return;
    mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
    mallopt(M_TRIM_THRESHOLD, kKept);
  });
}

#else

void keep_freed_memory() {}

#endif

}  // namespace longhaul
