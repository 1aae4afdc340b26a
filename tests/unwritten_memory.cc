// Fills all memory that a program gets with ones, when it is preloaded (LD_PRELOAD): floats that nobody has written are
// NaN then, and pointers lead nowhere. MALLOC_PERTURB_ cannot do so: what it fills in are numbers like any other.
#include <cerrno>
#include <cstddef>
#include <cstring>

extern "C" {

// glibc's own.
void* __libc_malloc(size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  void* const memory = __libc_malloc(size);
  return memory == nullptr ? nullptr : std::memset(memory, 0xff, size);
}

void* memalign(size_t alignment, size_t size) {
  void* const memory = __libc_memalign(alignment, size);
  return memory == nullptr ? nullptr : std::memset(memory, 0xff, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  void* const memory = memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}
}
