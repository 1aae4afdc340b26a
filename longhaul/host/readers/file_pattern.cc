#include "longhaul/host/readers/file_pattern.h"

#include <algorithm>

namespace longhaul {
namespace {

constexpr char kSpecial[] = "*?[\\";

// Takes the first element of the pattern, which stands for one character, off it. False: `c` is no such character.
bool take_set(std::string_view& pattern, char c) {
  const bool inverted = pattern.size() > 1 && (pattern[1] == '^' || pattern[1] == '!');
  size_t i = inverted ? 2 : 1;
  bool found = false;
  for (const size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found |= pattern[i] <= c && c <= pattern[i + 2];
      i += 2;
    } else {
      found |= pattern[i] == c;
    }
  }
  pattern.remove_prefix(std::min(i + 1, pattern.size()));
  return found != inverted;
}

bool take_one(std::string_view& pattern, char c) {
  if (pattern.empty() || (c == '/' && pattern[0] != '/')) return false;
  if (pattern[0] == '[') return take_set(pattern, c);
  const bool any = pattern[0] == '?';
  if (pattern[0] == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
  const char wanted = pattern[0];
  pattern.remove_prefix(1);
  return any || wanted == c;
}

void expand(FileSystem& files, const std::string& before, std::string_view pattern, std::vector<std::string>& found) {
  const size_t slash = pattern.find('/');
  const std::string_view part = pattern.substr(0, slash);
  const bool last = slash == std::string_view::npos;
  const auto follow = [&](const std::string& path) {
    if (!last) {
      expand(files, path + "/", pattern.substr(slash + 1), found);
    } else if (files.exists(path)) {
      found.push_back(path);
    }
  };
  if (part.find_first_of(kSpecial) == std::string_view::npos) return follow(before + std::string(part));
  const std::string directory = before.empty() ? "." : before;
  if (!files.is_directory(directory)) return;
  for (const std::string& name : files.list(directory)) {
    if (matches_pattern(name, part)) follow(before + name);
  }
}

}  // namespace

// The last star is tried again with one character more for as long as what follows does not match.
bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::string_view star_name, star_pattern;
  bool star = false;
  while (!name.empty() || !pattern.empty()) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      star_name = name;
      star_pattern = pattern;
      star = true;
      continue;
    }
    std::string_view rest = pattern;
    if (!name.empty() && take_one(rest, name[0])) {
      name.remove_prefix(1);
      pattern = rest;
      continue;
    }
    if (!star || star_name.empty() || star_name[0] == '/') return false;
    star_name.remove_prefix(1);
    name = star_name;
    pattern = star_pattern;
  }
  return true;
}

std::vector<std::string> matching_files(FileSystem& files, const std::string& pattern) {
  std::vector<std::string> found;
  expand(files, "", pattern, found);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace longhaul
