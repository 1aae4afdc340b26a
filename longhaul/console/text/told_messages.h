#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace longhaul::console {

// Messages that come again with each look at the same file, and are told once. One thread at a time.
class ToldMessages {
 public:
  static constexpr size_t kMostKept = 1000;  // when there are more, all may be told again

  // Whether that one was not told yet; then it counts as told.
  bool is_new(const std::string& message);

 private:
  std::set<std::string> told_;
};

}  // namespace longhaul::console
