#include "longhaul/runtime/shared_pages.h"

#include <iterator>

#include "longhaul/runtime/huge_pages.h"

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
  if (piece != nullptr) chunk_of(piece)->second.taken += bytes;
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
  if (newest_ == nullptr || chunks_[newest_].begun + bytes > kChunk) {
    char* const data = map_pages(kChunk);
    if (data == nullptr) return nullptr;
    newest_ = data;
    chunks_[data] = {};
  }
  size_t& begun = chunks_[newest_].begun;
  char* const piece = newest_ + begun;
  begun += bytes;
  return piece;
}

SharedPages::Chunks::iterator SharedPages::chunk_of(char* piece) {
  return std::prev(chunks_.upper_bound(piece));
}

void SharedPages::give_back(void* data, size_t bytes) {
  const MutexLock lock(mutex_);
  char* const piece = static_cast<char*>(data);
  const auto chunk = chunk_of(piece);
  chunk->second.taken -= bytes;
  free_[bytes].push_back(piece);
  if (chunk->second.taken == 0) drop(chunk);
}

void SharedPages::drop(Chunks::iterator chunk) {
  char* const begin = chunk->first;
  const auto is_inside = [&](char* piece) { return begin <= piece && piece < begin + kChunk; };
  for (auto it = free_.begin(); it != free_.end();) {
    std::erase_if(it->second, is_inside);
    it = it->second.empty() ? free_.erase(it) : std::next(it);
  }
  if (newest_ == begin) newest_ = nullptr;
  chunks_.erase(chunk);
  unmap_pages(begin, kChunk);
}

size_t SharedPages::chunks() const {
  const MutexLock lock(mutex_);
  return chunks_.size();
}

}  // namespace longhaul
