#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// Memory in pieces smaller than a huge page, placed next to each other in huge pages. The pages of a returned piece go
// back to the system immediately, its addresses to the next piece of its size; a chunk with no piece in use is
// unmapped. Any thread.
class SharedPages {
 public:
  static constexpr size_t kChunk = size_t{16} << 20;  // address space: its huge pages are used one by one

  SharedPages() = default;
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  // `bytes`: a multiple of kPage, at most kChunk. nullptr: no memory.
  void* take(size_t bytes) EXCLUDES(mutex_);
  void give_back(void* piece, size_t bytes) EXCLUDES(mutex_);

  size_t chunks() const EXCLUDES(mutex_);

  static SharedPages& of_process();  // never destroyed

 private:
  struct Chunk {
    size_t used = 0;  // bytes at its beginning that were ever in use
    size_t live = 0;  // bytes in use now
  };
  using Chunks = std::map<char*, Chunk>;

  Chunks::iterator chunk_of(char* piece) REQUIRES(mutex_);
  char* take_free(size_t bytes) REQUIRES(mutex_);
  char* take_new(size_t bytes) REQUIRES(mutex_);
  char* free_piece(char* piece, size_t bytes) EXCLUDES(mutex_);
  void keep(char* piece, size_t bytes) REQUIRES(mutex_);

  mutable Mutex mutex_;
  Chunks chunks_ GUARDED_BY(mutex_);                              // by address
  std::map<size_t, std::vector<char*>> free_ GUARDED_BY(mutex_);  // by bytes
  char* newest_ GUARDED_BY(mutex_) = nullptr;                     // the chunk with room at its end
};

}  // namespace longhaul
