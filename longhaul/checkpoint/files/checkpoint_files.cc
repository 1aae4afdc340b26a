#include "longhaul/checkpoint/files/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/checkpoint/files/v1_checkpoint.h"

namespace longhaul {
namespace {

constexpr std::string_view kIndex = ".index";
constexpr std::string_view kData = ".data-";
constexpr std::string_view kMeta = ".meta";
constexpr std::string_view kTemporary = ".tempstate";

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "00001-of-00002" apart.
struct ShardOfShards {
  int shard, num_shards;
};
std::optional<ShardOfShards> parse_shard(std::string_view text) {
  const size_t of = text.find("-of-");
  if (of == text.npos || !is_digits(text.substr(0, of)) || !is_digits(text.substr(of + 4))) return std::nullopt;
  ShardOfShards result{};
  const auto parse = [](std::string_view digits, int& number) {
    return std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc{};
  };
  if (!parse(text.substr(0, of), result.shard) || !parse(text.substr(of + 4), result.num_shards)) return std::nullopt;
  return result;
}

// Whether the data files of `base` among the sorted `names` make up a whole set.
bool has_all_shards(const std::vector<std::string>& names, const std::string& base) {
  std::map<int, std::set<int>> shards;
  for (const std::string& name : data_names_of(names, base)) {
    const auto part = parse_shard(std::string_view(name).substr(base.size() + kData.size()));
    shards[part->num_shards].insert(part->shard);
  }
  return std::any_of(shards.begin(), shards.end(), [](const auto& set) {
    return static_cast<int>(set.second.size()) == set.first && *set.second.rbegin() == set.first - 1;
  });
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::binary_search(names.begin(), names.end(), name);
}

// Tells the temporary files of this process from those of others.
const std::string& process_token() {
  static const std::string token = fmt::format("{}", std::random_device{}());
  return token;
}

// Of "m-5.index", "m-5.meta" and "m-5.data-00000-of-00001" the prefix m-5, also where they are aside; nullopt: it is no
// such name.
std::optional<std::string> base_of_part(const std::string& name) {
  for (const std::string_view ending : {kIndex, kMeta}) {
    if (name.ends_with(ending)) return without_aside(name.substr(0, name.size() - ending.size()));
  }
  const auto base = base_of_data_name(name);
  return base ? std::optional(without_aside(*base)) : std::nullopt;
}

// `base`: of the checkpoints' names; empty: all that have a step.
bool is_stale_temporary(const std::string& name, const std::string& base) {
  const size_t at = name.rfind(kTemporary);
  if (at == name.npos) return false;
  const std::string_view token = std::string_view(name).substr(at + kTemporary.size());
  if (token.starts_with(process_token() + ".") || token.find_first_not_of("0123456789.") != token.npos) return false;
  const auto found = base_of_part(name.substr(0, at));
  if (!found) return false;
  const BaseAndStep parts = split_step(*found);
  return base.empty() ? parts.step.has_value() : *found == base || (parts.step && parts.base == base);
}

// nullopt: it was removed meanwhile, or is a link that leads nowhere.
std::optional<double> time_if_there(FileSystem& files, const std::string& path) {
  try {
    return files.modified_at(path);
  } catch (const NotFoundError&) {
    return std::nullopt;
  } catch (const Error&) {
    if (files.exists(path)) throw;
    return std::nullopt;  // it is a link to itself
  }
}

// The base names that have an index: of checkpoints, or those under which they were set aside, unless they were
// replaced meanwhile.
std::vector<std::string> indexed_in(const std::vector<std::string>& names, const std::string& basename) {
  std::vector<std::string> indexed;
  for (const std::string& name : names) {
    if (!name.ends_with(kIndex)) continue;
    const std::string committed = name.substr(0, name.size() - kIndex.size());
    const std::string plain = without_aside(committed);
    if (!basename.empty() && split_step(plain).base != basename && plain != basename) continue;
    if (committed == plain || !contains(names, index_path(plain))) indexed.push_back(committed);
  }
  return indexed;
}

bool before(const FoundCheckpoint& a, const FoundCheckpoint& b) {
  if (a.step != b.step) return a.step < b.step;
  if (a.modified_at != b.modified_at) return a.modified_at < b.modified_at;
  return a.prefix < b.prefix;
}

}  // namespace

std::vector<std::string> names_in(FileSystem& files, const std::string& directory) {
  const std::string place = directory.empty() ? "." : directory;
  if (!files.is_directory(place)) return {};
  return files.list(place);
}

std::string index_path(const std::string& prefix) {
  return prefix + std::string(kIndex);
}

std::string data_path(const std::string& prefix, int shard, int num_shards) {
  return fmt::format("{}{}{:05}-of-{:05}", prefix, kData, shard, num_shards);
}

std::string meta_graph_filename(const std::string& checkpoint, const std::string& suffix) {
  std::string_view name = checkpoint;
  const size_t of = name.rfind("-of-");
  if (of != name.npos && is_digits(name.substr(of + 4))) {
    const size_t dash = name.rfind('-', of - 1);
    const bool is_shard = dash != name.npos && dash + 1 < of &&
                          name.substr(dash + 1, of - dash - 1).find_first_not_of("0123456789?") == name.npos;
    if (is_shard) name = name.substr(0, dash);
  }
  return fmt::format("{}.{}", name, suffix);
}

BaseAndStep split_step(const std::string& prefix) {
  const size_t dash = prefix.rfind('-');
  int64_t step = 0;
  if (dash == prefix.npos || dash == 0 || !is_digits(std::string_view(prefix).substr(dash + 1))) return {prefix, {}};
  const auto parsed = std::from_chars(prefix.data() + dash + 1, prefix.data() + prefix.size(), step);
  if (parsed.ec != std::errc{}) return {prefix, {}};
  return {prefix.substr(0, dash), step};
}

std::optional<std::string> committed_prefix(FileSystem& files, const std::string& prefix) {
  for (const std::string& candidate : {prefix, aside_prefix(prefix)}) {
    if (files.exists(index_path(candidate))) return candidate;
  }
  return std::nullopt;
}

std::string canonical_prefix(const std::string& prefix) {
  const std::string path = strip_file_scheme(prefix);
  std::string plain = std::filesystem::absolute(path.empty() ? "." : path).lexically_normal().string();
  if (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

std::string prefix_in(FileSystem& files, const std::string& directory, const std::string& prefix) {
  if (lies_in(prefix, directory)) return prefix;
  const std::string here = join_path(directory, base_name(prefix));
  if (checkpoint_exists(files, here) || committed_prefix(files, here)) return here;
  return data_files_of(files, here).empty() ? prefix : here;
}

bool checkpoint_exists(FileSystem& files, const std::string& prefix) {
  if (const auto committed = committed_prefix(files, prefix)) {
    return files.exists(data_path(*committed, 0, 1)) ||
           has_all_shards(names_in(files, directory_name(prefix)), base_name(*committed));
  }
  return is_v1_file(files, prefix);
}

std::vector<double> checkpoint_mtimes(FileSystem& files, const std::vector<std::string>& prefixes) {
  std::vector<double> times;
  for (const std::string& prefix : prefixes) {
    if (!checkpoint_exists(files, prefix)) continue;
    const auto committed = committed_prefix(files, prefix);
    if (const auto time = time_if_there(files, committed ? index_path(*committed) : prefix)) times.push_back(*time);
  }
  return times;
}

void remove_if_exists(FileSystem& files, const std::string& path) {
  try {
    files.remove(path);
  } catch (const NotFoundError&) {
  }
}

std::vector<std::string> data_names_of(const std::vector<std::string>& names, const std::string& base) {
  const std::string start = base + std::string(kData);
  std::vector<std::string> found;
  for (auto it = std::lower_bound(names.begin(), names.end(), start); it != names.end() && it->starts_with(start);
       ++it) {
    if (parse_shard(std::string_view(*it).substr(start.size()))) found.push_back(*it);
  }
  return found;
}

std::optional<std::string> base_of_data_name(const std::string& name) {
  const size_t at = name.rfind(kData);
  if (at == name.npos || !parse_shard(std::string_view(name).substr(at + kData.size()))) return std::nullopt;
  return name.substr(0, at);
}

std::vector<std::string> data_files_of(FileSystem& files, const std::string& prefix) {
  const std::string base = base_name(prefix);
  std::vector<std::string> paths;
  for (const std::string& name : data_names_of(names_in(files, directory_name(prefix)), base)) {
    paths.push_back(prefix + name.substr(base.size()));
  }
  return paths;
}

void remove_checkpoint(FileSystem& files, const std::string& prefix, const std::string& meta_suffix) {
  const std::vector<std::string> v1 =
      committed_prefix(files, prefix) ? std::vector<std::string>{} : v1_files(files, prefix);
  for (const std::string& part : {aside_prefix(prefix), prefix}) {
    remove_if_exists(files, index_path(part));
    for (const std::string& path : data_files_of(files, part)) remove_if_exists(files, path);
    remove_if_exists(files, meta_graph_filename(part, meta_suffix));
  }
  for (const std::string& path : v1) remove_if_exists(files, path);
}

std::vector<FoundCheckpoint> find_checkpoints(FileSystem& files, const std::string& directory,
                                              const std::string& basename) {
  const std::vector<std::string> names = names_in(files, directory);
  std::vector<FoundCheckpoint> found;
  for (const std::string& committed : indexed_in(names, basename)) {
    if (!has_all_shards(names, committed)) continue;
    const std::string plain = without_aside(committed);
    const auto modified_at = time_if_there(files, join_path(directory, index_path(committed)));
    if (modified_at) found.push_back({join_path(directory, plain), split_step(plain).step, *modified_at});
  }
  std::sort(found.begin(), found.end(), before);
  return found;
}

std::vector<std::string> incomplete_checkpoints(FileSystem& files, const std::string& directory,
                                                const std::string& basename) {
  const std::vector<std::string> names = names_in(files, directory);
  std::vector<std::string> prefixes;
  for (const std::string& committed : indexed_in(names, basename)) {
    if (!has_all_shards(names, committed)) prefixes.push_back(join_path(directory, without_aside(committed)));
  }
  return prefixes;
}

std::string temporary_path(const std::string& path) {
  static std::atomic<uint64_t> count{0};
  return fmt::format("{}{}{}.{}", path, kTemporary, process_token(), ++count);
}

bool is_temporary_data(const std::string& path) {
  const std::string name = base_name(path);
  const size_t at = name.rfind(kTemporary);
  if (at == name.npos) return false;
  const std::string_view token = std::string_view(name).substr(at + kTemporary.size());
  return token.find_first_not_of("0123456789.") == token.npos && base_of_data_name(name.substr(0, at)).has_value();
}

std::optional<std::string> base_of_temporary_index(const std::string& name) {
  const size_t at = name.rfind(kTemporary);
  if (at == name.npos || at < kIndex.size() || !std::string_view(name).substr(0, at).ends_with(kIndex)) return {};
  const std::string_view token = std::string_view(name).substr(at + kTemporary.size());
  if (token.empty() || token.find_first_not_of("0123456789.") != token.npos) return {};
  return name.substr(0, at - kIndex.size());
}

void remove_stale_temporaries(FileSystem& files, const std::string& prefix) {
  const std::string directory = directory_name(prefix);
  const std::string base = split_step(base_name(prefix)).base;
  for (const std::string& name : names_in(files, directory)) {
    if (is_stale_temporary(name, base)) remove_if_exists(files, join_path(directory, name));
  }
}

}  // namespace longhaul
