#include "longhaul/checkpoint/files/v1_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/checkpoint/table/table.h"

namespace longhaul {
namespace {

// "-00000-of-00001", or with question marks for the first number.
constexpr size_t kShardEnding = 15;

bool is_shard_ending(std::string_view text, std::string_view first_digits) {
  return text.size() == kShardEnding && text[0] == '-' && text.substr(6, 4) == "-of-" &&
         text.substr(1, 5).find_first_not_of(first_digits) == text.npos &&
         text.substr(10).find_first_not_of("0123456789") == text.npos;
}

std::string without_pattern(const std::string& prefix) {
  const size_t at = prefix.size() - std::min(prefix.size(), kShardEnding);
  return is_shard_ending(std::string_view(prefix).substr(at), "?") ? prefix.substr(0, at) : prefix;
}

// Of "m-5.index", "m-5.meta" and "m-5.data-00000-of-00001" the prefix m-5; nullopt: it is no such name.
std::optional<std::string> prefix_of_file(const std::string& path) {
  for (const std::string_view ending : {".index", ".meta"}) {
    if (path.ends_with(ending) && path.size() > ending.size()) return path.substr(0, path.size() - ending.size());
  }
  return base_of_data_name(path);
}

// What who names a directory may have meant.
std::string about_directory(FileSystem& files, const std::string& directory) {
  const std::string is_one = "That is a directory, but a checkpoint is named by the prefix of its files: ";
  const auto latest = latest_checkpoint(files, directory);
  if (!latest) return is_one + "the directory has no checkpoints";
  return fmt::format("{}the latest one in the directory is {}", is_one, *latest);
}

}  // namespace

bool is_v1_file(FileSystem& files, const std::string& path) {
  if (base_name(path).find(".index") != path.npos || !files.exists(path) || files.is_directory(path)) return false;
  try {
    return Table::is_table(*files.open(path));
  } catch (const NotFoundError&) {
  } catch (const InvalidArgumentError&) {  // a pipe
  }
  return false;
}

std::vector<std::string> v1_files(FileSystem& files, const std::string& prefix) {
  if (is_v1_file(files, prefix)) return {prefix};
  const std::string plain = without_pattern(prefix), base = base_name(plain);
  std::vector<std::string> paths;
  for (const std::string& name : names_in(files, directory_name(plain))) {
    if (!name.starts_with(base) || !is_shard_ending(std::string_view(name).substr(base.size()), "0123456789")) continue;
    paths.push_back(plain + name.substr(base.size()));
  }
  const bool all = std::all_of(paths.begin(), paths.end(), [&](const auto& path) { return is_v1_file(files, path); });
  return all ? paths : std::vector<std::string>{};
}

std::vector<std::string> find_v1_checkpoints(FileSystem& files, const std::string& directory,
                                             const std::string& basename) {
  std::set<std::string> bases;
  for (const std::string& name : names_in(files, directory)) {
    const size_t at = name.size() - std::min(name.size(), kShardEnding);
    const bool is_shard = is_shard_ending(std::string_view(name).substr(at), "0123456789");
    const std::string base = is_shard ? name.substr(0, at) : name;
    const BaseAndStep parts = split_step(base);
    const bool is_ours = basename.empty() ? parts.step.has_value() : base == basename || parts.base == basename;
    if (is_ours && is_v1_file(files, join_path(directory, name))) bases.insert(base);
  }
  std::vector<std::string> prefixes;
  for (const std::string& base : bases) prefixes.push_back(join_path(directory, base));
  return prefixes;
}

void throw_no_checkpoint(FileSystem& files, const std::string& prefix, const std::string& what) {
  const std::vector<std::string> v1 = v1_files(files, prefix);
  if (!v1.empty()) {
    throw UnimplementedError(fmt::format(
        "{} is a V1 checkpoint ({}). This format is not supported: restore it with TensorFlow and save it again with "
        "write_version=V2",
        prefix, v1.front() == prefix ? "a single file" : fmt::format("in {} shards, {}", v1.size(), v1.front())));
  }
  if (files.is_directory(prefix)) throw NotFoundError(fmt::format("{}. {}", what, about_directory(files, prefix)));
  const auto meant = prefix_of_file(prefix);
  if (!meant) throw NotFoundError(what);
  throw NotFoundError(
      fmt::format("{}. That is the name of one of its files: use the prefix of the checkpoint, {}", what, *meant));
}

}  // namespace longhaul
