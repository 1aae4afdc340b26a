#include "longhaul/runtime/memory/freed_memory.h"

#include <cstdlib>
#include <mutex>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace longhaul {

#ifdef __GLIBC__

namespace {

constexpr int kLargestHeapBlock = 32 << 20;   // DEFAULT_MMAP_THRESHOLD_MAX of glibc's malloc.c, on 64 bits
constexpr int kKept = 2 * kLargestHeapBlock;  // as glibc derives it

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Those from which on glibc moves its thresholds no more; its tunables are for much else than malloc.
bool environment_says() {
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_"})
    if (!variable(name).empty()) return true;
  return variable("GLIBC_TUNABLES").find("glibc.malloc.") != std::string_view::npos;
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
