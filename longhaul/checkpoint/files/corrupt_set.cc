#include "longhaul/checkpoint/files/corrupt_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

constexpr std::string_view kCorrupt = ".corrupt";
constexpr std::string_view kCorruptIndex = ".index.corrupt";

std::string corrupt_path(const std::string& path) {
  return fmt::format("{}{}", path, kCorrupt);
}

void rename_corrupt(FileSystem& files, const std::string& path) {
  check_directory_owner(files, path);
  files.rename(path, corrupt_path(path));
}

// A directory that had the name of a file stays: what is in it is somebody's.
void remove_file(FileSystem& files, const std::string& path) {
  if (!files.is_directory(path)) remove_if_exists(files, path);
}

// The index last: as long as it is there, the set is found.
void remove_corrupt_set(FileSystem& files, const std::string& prefix) {
  check_directory_owner(files, prefix);
  const std::string start = base_name(prefix) + ".", index = base_name(corrupt_path(index_path(prefix)));
  const std::string aside = base_name(aside_prefix(prefix)) + ".";  // another set
  for (const std::string& name : files.list(directory_name(prefix))) {
    const bool is_of_set = name.starts_with(start) && name.ends_with(kCorrupt) && !name.starts_with(aside);
    const bool is_part = is_of_set && name != index;
    if (is_part) remove_file(files, join_path(directory_name(prefix), name));
  }
  remove_file(files, corrupt_path(index_path(prefix)));
}

std::vector<std::string> all_but_index(FileSystem& files, const std::string& prefix, const std::string& meta_suffix) {
  std::vector<std::string> paths = data_files_of(files, prefix);
  const std::string meta = meta_graph_filename(prefix, meta_suffix);
  if (files.exists(meta)) paths.push_back(meta);
  return paths;
}

}  // namespace

std::string mark_corrupt(FileSystem& files, const std::string& prefix, const std::string& meta_suffix) {
  const std::string committed = committed_prefix(files, prefix).value_or(prefix);
  const std::vector<std::string> paths = all_but_index(files, committed, meta_suffix);
  const bool has_index = files.exists(index_path(committed));
  if (!has_index && data_files_of(files, committed).empty()) throw NotFoundError("there is no checkpoint " + prefix);
  if (files.exists(corrupt_path(index_path(committed)))) remove_corrupt_set(files, committed);
  if (has_index) {
    rename_corrupt(files, index_path(committed));
    files.sync_directory(directory_name(committed));
  }
  for (const std::string& path : paths) rename_corrupt(files, path);
  files.sync_directory(directory_name(committed));
  return corrupt_path(has_index ? index_path(committed) : paths.front());
}

// Where one of the new names is taken, or that of the meta graph, which comes last, the files are of a later save.
void complete_corrupt_sets(FileSystem& files, const std::string& directory) {
  for (const std::string& prefix : corrupt_sets(files, directory)) {
    if (files.exists(index_path(prefix)) || files.exists(corrupt_path(meta_graph_filename(prefix)))) continue;
    const std::vector<std::string> paths = all_but_index(files, prefix, "meta");
    const auto is_taken = [&](const std::string& path) { return files.exists(corrupt_path(path)); };
    if (paths.empty() || std::any_of(paths.begin(), paths.end(), is_taken)) continue;
    for (const std::string& path : paths) rename_corrupt(files, path);
    files.sync_directory(directory);
  }
}

bool is_half_corrupt(const std::vector<std::string>& names, const std::string& base) {
  const auto is_there = [&](const std::string& name) { return std::binary_search(names.begin(), names.end(), name); };
  const auto is_taken = [&](const std::string& name) { return is_there(corrupt_path(name)); };
  const std::vector<std::string> data = data_names_of(names, base);
  return is_taken(index_path(base)) && !is_taken(meta_graph_filename(base)) && !data.empty() &&
         std::none_of(data.begin(), data.end(), is_taken);
}

std::vector<std::string> corrupt_sets(FileSystem& files, const std::string& directory) {
  std::vector<std::pair<double, std::string>> found;
  if (!files.is_directory(directory)) return {};
  for (const std::string& name : files.list(directory)) {
    if (!name.ends_with(kCorruptIndex)) continue;
    const std::string path = join_path(directory, name);
    if (files.is_directory(path)) continue;
    found.emplace_back(files.modified_at(path), path.substr(0, path.size() - kCorruptIndex.size()));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> prefixes;
  for (auto& [time, prefix] : found) prefixes.push_back(std::move(prefix));
  return prefixes;
}

void remove_corrupt_sets(FileSystem& files, const std::string& directory, size_t keep) {
  const std::vector<std::string> sets = corrupt_sets(files, directory);
  for (size_t i = 0; i + keep < sets.size(); ++i) remove_corrupt_set(files, sets[i]);
}

}  // namespace longhaul
