#include "longhaul/runtime/memory/shared_pages.h"

#include <iterator>
#include <new>

#include "longhaul/base/huge_pages.h"

namespace longhaul {

SharedPages& SharedPages::of_process() {
  static SharedPages* const pages = new SharedPages;
  return *pages;
}

SharedPages::~SharedPages() {
  for (const auto& [data, chunk] : chunks_) unmap_pages(data, kChunk);
}

void* SharedPages::take(size_t bytes) {
  const MutexLock lock(mutex_);
  char* piece = take_free(bytes);
  if (piece == nullptr) piece = take_new(bytes);
  if (piece != nullptr) chunk_of(piece)->second.live += bytes;
  return piece;
}

char* SharedPages::take_free(size_t bytes) {
  const auto found = free_.find(bytes);
  if (found == free_.end()) return nullptr;
  char* const piece = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) free_.erase(found);
  return piece;
}

char* SharedPages::take_new(size_t bytes) {
  if (newest_ == nullptr || chunks_[newest_].used + bytes > kChunk) {
    char* const data = map_pages(kChunk);
    if (data == nullptr) return nullptr;
    newest_ = data;
    chunks_[data] = {};
  }
  size_t& used = chunks_[newest_].used;
  char* const piece = newest_ + used;
  used += bytes;
  return piece;
}

SharedPages::Chunks::iterator SharedPages::chunk_of(char* piece) {
  return std::prev(chunks_.upper_bound(piece));
}

void SharedPages::give_back(void* data, size_t bytes) {
  char* const piece = static_cast<char*>(data);
  empty_pages(piece, bytes);
  if (char* const chunk = free_piece(piece, bytes)) unmap_pages(chunk, kChunk);
}

// Returns the chunk if nothing of it is in use any more: nobody knows of it then.
char* SharedPages::free_piece(char* piece, size_t bytes) {
  const MutexLock lock(mutex_);
  const auto chunk = chunk_of(piece);
  char* const begin = chunk->first;
  chunk->second.live -= bytes;
  if (chunk->second.live > 0) {
    keep(piece, bytes);
    return nullptr;
  }
  for (auto it = free_.begin(); it != free_.end();) {
    std::erase_if(it->second, [&](char* other) { return begin <= other && other < begin + kChunk; });
    it = it->second.empty() ? free_.erase(it) : std::next(it);
  }
  if (newest_ == begin) newest_ = nullptr;
  chunks_.erase(chunk);
  return begin;
}

void SharedPages::keep(char* piece, size_t bytes) {
  try {
    free_[bytes].push_back(piece);
  } catch (const std::bad_alloc&) {  // its addresses are not used again while the chunk is there
  }
}

size_t SharedPages::chunks() const {
  const MutexLock lock(mutex_);
  return chunks_.size();
}

}  // namespace longhaul
