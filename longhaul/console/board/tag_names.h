#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul::console {

// The tags of all runs of a board, by numbers: what a client asks for by number is one of them, whatever bytes a tag
// has. Any thread may call.
class TagNames {
 public:
  // The number of a tag, which may be new. nullopt: it is too long, or there are too many.
  std::optional<uint32_t> number_of(const std::string& tag) EXCLUDES(mutex_);
  std::vector<std::string> all() const EXCLUDES(mutex_);  // by number
  size_t count() const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, uint32_t> numbers_ GUARDED_BY(mutex_);
  std::vector<std::string> names_ GUARDED_BY(mutex_);
};

}  // namespace longhaul::console
