#include "longhaul/console/board/tag_names.h"

#include "longhaul/console/board/board_limits.h"

namespace longhaul::console {

std::optional<uint32_t> TagNames::number_of(const std::string& tag) {
  if (tag.size() > kMostTagBytes) return std::nullopt;
  MutexLock lock(mutex_);
  const auto known = numbers_.find(tag);
  if (known != numbers_.end()) return known->second;
  if (names_.size() >= kMostTags) return std::nullopt;
  const auto number = static_cast<uint32_t>(names_.size());
  numbers_.emplace(tag, number);
  names_.push_back(tag);
  return number;
}

std::vector<std::string> TagNames::all() const {
  MutexLock lock(mutex_);
  return names_;
}

size_t TagNames::count() const {
  MutexLock lock(mutex_);
  return names_.size();
}

}  // namespace longhaul::console
