#include "longhaul/io/process/process_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include "longhaul/base/above_stdio.h"
#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

// The words of a small file's first line; none where it cannot be read.
std::vector<std::string> first_words(const std::string& path) {
  const AboveStdio above;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

std::optional<uint64_t> as_number(const std::string& word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
}

struct Group {
  std::string controllers, path;  // "cpu,cpuacct", "/a/b"; version 2 has no controllers here
};

std::vector<Group> groups_of_process(const std::string& root) {
  const AboveStdio above;
  std::ifstream file(join_path(root, "proc/self/cgroup"));
  std::vector<Group> groups;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    groups.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return groups;
}

bool has_controller(const std::string& controllers, std::string_view wanted) {
  return ("," + controllers + ",").find("," + std::string(wanted) + ",") != std::string::npos;
}

// Where version 1 has a controller: under its own name, a link as a rule, or under those of all that share it.
std::vector<std::string> tops(const std::string& root, const Group& group, std::string_view controller) {
  const std::string all = join_path(root, "sys/fs/cgroup");
  if (group.controllers.empty()) return {all};
  const std::string own = join_path(all, controller), shared = join_path(all, group.controllers);
  return own == shared ? std::vector{own} : std::vector{own, shared};
}

// "/a/b", "/a", "".
std::vector<std::string> with_those_around(std::string path) {
  if (!path.starts_with('/')) path.clear();
  std::vector<std::string> paths;
  for (size_t slash = path.rfind('/'); slash != path.npos; slash = path.rfind('/')) {
    if (path.size() > 1) paths.push_back(path);
    path.resize(slash);
  }
  paths.emplace_back();
  return paths;
}

// The directories of a controller's group and of those around it, the innermost first. In a container the path may be
// that of the host, which is not there: the last one, the top, is what counts then.
std::vector<std::string> group_directories(const std::string& root, std::string_view controller) {
  std::vector<std::string> directories;
  for (const Group& group : groups_of_process(root)) {
    const bool is_v2 = group.controllers.empty();
    if (!is_v2 && !has_controller(group.controllers, controller)) continue;
    for (const std::string& top : tops(root, group, controller))
      for (const std::string& path : with_those_around(group.path)) directories.push_back(top + path);
  }
  return directories;
}

// The least of what the group and those around it say.
template <typename Value>
std::optional<Value> least(const std::string& root, std::string_view controller,
                           const std::function<std::optional<Value>(const std::string& directory)>& read) {
  std::optional<Value> found;
  for (const std::string& directory : group_directories(root, controller)) {
    const std::optional<Value> value = read(directory);
    if (value && (!found || *value < *found)) found = value;
  }
  return found;
}

// "200000 100000": so many microseconds in each period of so many. Version 1 has a file for each; -1: no limit.
std::optional<double> processors_of(const std::string& directory) {
  std::vector<std::string> words = first_words(join_path(directory, "cpu.max"));
  if (words.empty()) {
    words = first_words(join_path(directory, "cpu.cfs_quota_us"));
    for (const std::string& word : first_words(join_path(directory, "cpu.cfs_period_us"))) words.push_back(word);
  }
  if (words.size() != 2) return std::nullopt;
  const auto quota = as_number(words[0]), period = as_number(words[1]);
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Version 1 tells of no limit by a number near 2^63.
std::optional<uint64_t> bytes_of(const std::string& directory) {
  constexpr uint64_t kNoLimit = uint64_t{1} << 62;
  for (const char* file : {"memory.max", "memory.limit_in_bytes"}) {
    const std::vector<std::string> words = first_words(join_path(directory, file));
    const auto bytes = words.empty() ? std::nullopt : as_number(words[0]);
    if (bytes && *bytes < kNoLimit) return bytes;
  }
  return std::nullopt;
}

std::optional<uint64_t> threads_of(const std::string& directory) {
  const std::vector<std::string> words = first_words(join_path(directory, "pids.max"));
  return words.empty() ? std::nullopt : as_number(words[0]);
}

// A kernel for more processors than the mask has room for refuses it (EINVAL).
std::optional<int> processors_in_mask_of(pid_t thread) {
  constexpr int kMost = 1 << 20;
  for (int room = CPU_SETSIZE; room <= kMost; room *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(room), [](cpu_set_t* set) { CPU_FREE(set); });
    if (!mask) return std::nullopt;
    const size_t bytes = CPU_ALLOC_SIZE(room);
    CPU_ZERO_S(bytes, mask.get());
    if (sched_getaffinity(thread, bytes, mask.get()) == 0) return std::max(1, CPU_COUNT_S(bytes, mask.get()));
    if (errno != EINVAL) return std::nullopt;
  }
  return std::nullopt;
}

// Of the main thread; where that has ended, of this one, which may be bound to a part.
int processors_of_mask() {
  const std::optional<int> of_main = processors_in_mask_of(getpid());
  return of_main ? *of_main : processors_in_mask_of(0).value_or(1);
}

}  // namespace

int usable_processors(const std::string& root) {
  const int of_mask = processors_of_mask();
  const std::optional<double> limit = least<double>(root, "cpu", processors_of);
  return limit && *limit < of_mask ? std::max(1, static_cast<int>(std::ceil(*limit))) : of_mask;
}

std::optional<uint64_t> thread_limit(const std::string& root) {
  return least<uint64_t>(root, "pids", threads_of);
}

std::optional<uint64_t> memory_limit(const std::string& root) {
  return least<uint64_t>(root, "memory", bytes_of);
}

}  // namespace longhaul
