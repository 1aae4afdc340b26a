#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// Memory in pieces that are smaller than a huge page and lie side by side in such. The pages of what is given back go
// to the system at once, its addresses to the next piece of its size; once nothing of a chunk is in use, the chunk is
// unmapped. Any thread.
class SharedPages {
 public:
  static constexpr size_t kChunk = size_t{16} << 20;  // address space: its huge pages are used one after another

  SharedPages() = default;
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  // `bytes`: a multiple of kPage, at most kChunk. nullptr: there is no memory.
  void* take(size_t bytes) EXCLUDES(mutex_);
  void give_back(void* piece, size_t bytes) EXCLUDES(mutex_);

  size_t chunks() const EXCLUDES(mutex_);

  static SharedPages& of_process();  // lives for ever

 private:
  struct Chunk {
    size_t used = 0;  // bytes at its beginning that were handed out at some time
    size_t live = 0;  // bytes that are now
  };
  using Chunks = std::map<char*, Chunk>;

  Chunks::iterator chunk_of(char* piece) REQUIRES(mutex_);
  char* take_free(size_t bytes) REQUIRES(mutex_);
  char* take_new(size_t bytes) REQUIRES(mutex_);
  char* free_piece(char* piece, size_t bytes) EXCLUDES(mutex_);
  void keep(char* piece, size_t bytes) REQUIRES(mutex_);

  mutable Mutex mutex_;
  Chunks chunks_ GUARDED_BY(mutex_);                              // by where they begin
  std::map<size_t, std::vector<char*>> free_ GUARDED_BY(mutex_);  // by bytes
  char* newest_ GUARDED_BY(mutex_) = nullptr;                     // the chunk with room at its end
};

}  // namespace longhaul
