#include "longhaul/checkpoint/directory/named_checkpoints.h"

#include <algorithm>
#include <map>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/checkpoint/files/set_aside.h"

namespace longhaul {
namespace {

// What a line of the retention file says that is neither pinned nor kept for its metric.
bool is_being_deleted(const KeptCheckpoint& kept) {
  return kept.fallen_out && !kept.pinned && !kept.metric;
}

bool lacks_index(const std::vector<std::string>& names, const std::string& base) {
  const auto is_there = [&](const std::string& name) { return std::binary_search(names.begin(), names.end(), name); };
  return !data_names_of(names, base).empty() && !is_there(index_path(base)) &&
         !is_there(index_path(aside_prefix(base))) && !is_half_corrupt(names, base);
}

// A list that is read while an index moves may miss it in both places: so it is looked for by its names again.
std::vector<std::string> without_index(FileSystem& files, const std::vector<std::string>& names,
                                       const std::string& directory, const std::set<std::string>& bases) {
  std::vector<std::string> prefixes;
  for (const std::string& base : bases) {
    const std::string prefix = join_path(directory, base);
    if (lacks_index(names, base) && !committed_prefix(files, prefix)) prefixes.push_back(prefix);
  }
  return prefixes;
}

std::vector<std::string> without_index_elsewhere(FileSystem& files, const std::set<std::string>& elsewhere) {
  std::map<std::string, std::set<std::string>> bases;
  for (const std::string& prefix : elsewhere) bases[directory_name(prefix)].insert(base_name(prefix));
  std::vector<std::string> prefixes;
  for (const auto& [directory, wanted] : bases) {
    try {
      const auto found = without_index(files, names_in(files, directory), directory, wanted);
      prefixes.insert(prefixes.end(), found.begin(), found.end());
    } catch (const Error& error) {
      log_debug("{} cannot be searched: {}", directory, error.what());
    }
  }
  return prefixes;
}

}  // namespace

NamedCheckpoints named_checkpoints(FileSystem& files, const std::string& directory) {
  NamedCheckpoints named;
  const std::string here = canonical_prefix(directory);
  const CheckpointState state = read_checkpoint_state(files, directory).state;
  std::set<std::string> paths(state.all_model_checkpoint_paths.begin(), state.all_model_checkpoint_paths.end());
  if (!state.model_checkpoint_path.empty()) paths.insert(state.model_checkpoint_path);
  for (const std::string& path : paths) {
    const std::string prefix = canonical_prefix(path);
    if (base_name(prefix).empty()) continue;
    named.kept.insert(base_name(prefix));
    if (directory_name(prefix) != here) named.elsewhere.insert(prefix);
  }
  for (const std::string& path : state.paths_marked_for_deletion)
    named.marked_for_deletion.insert(base_name(canonical_prefix(path)));
  for (const auto& [prefix, kept] : read_retention(files, directory)) {
    (is_being_deleted(kept) ? named.marked_for_deletion : named.kept).insert(base_name(prefix));
  }
  named.marked_for_deletion.erase("");
  for (const std::string& base : named.kept) named.marked_for_deletion.erase(base);
  return named;
}

// Who deletes a checkpoint first writes that it is kept no more: so the list is older than what is read of the names.
std::vector<std::string> checkpoints_without_index(FileSystem& files, const std::string& directory) {
  const std::vector<std::string> names = names_in(files, directory);
  const NamedCheckpoints named = named_checkpoints(files, directory);
  std::vector<std::string> prefixes = without_index(files, names, directory, named.kept);
  const std::vector<std::string> others = without_index_elsewhere(files, named.elsewhere);
  prefixes.insert(prefixes.end(), others.begin(), others.end());
  return prefixes;
}

}  // namespace longhaul
