#include "longhaul/train/recovery/recovered_list.h"

#include <algorithm>
#include <set>

#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

struct Managed {
  std::string prefix;
  double time = 0;
};

bool has_files(const std::vector<std::string>& names, const std::string& base) {
  const auto at = std::lower_bound(names.begin(), names.end(), base);
  return at != names.end() && at->starts_with(base);
}

std::set<std::string> canonical(const std::vector<std::string>& prefixes) {
  std::set<std::string> names;
  for (const std::string& prefix : prefixes) names.insert(canonical_prefix(prefix));
  return names;
}

double time_of_commit(FileSystem& files, const std::string& prefix) {
  const std::vector<double> committed = checkpoint_mtimes(files, {prefix});
  return committed.empty() ? 0 : committed[0];
}

bool is_listed(const std::vector<Managed>& managed, const std::string& prefix) {
  const std::string key = canonical_prefix(prefix);
  return std::any_of(managed.begin(), managed.end(),
                     [&](const Managed& each) { return canonical_prefix(each.prefix) == key; });
}

// What stands before the restored one and is of a later step was skipped, now or by an earlier run.
std::vector<std::string> skipped_before(const std::string& restored, const std::vector<std::string>& listed) {
  const std::optional<int64_t> step = split_step(restored).step;
  std::vector<std::string> skipped;
  for (const std::string& prefix : listed) {
    if (canonical_prefix(prefix) == canonical_prefix(restored)) break;
    if (split_step(prefix).step > step) skipped.push_back(prefix);
  }
  return skipped;
}

// Those of them that come after the restored one come before it.
void move_before_restored(const std::set<std::string>& skipped, const std::string& restored,
                          std::vector<Managed>& managed) {
  const auto is_restored = [&](const Managed& each) { return canonical_prefix(each.prefix) == restored; };
  const auto is_skipped = [&](const Managed& each) {
    return !is_restored(each) && skipped.contains(canonical_prefix(each.prefix));
  };
  std::stable_partition(std::find_if(managed.begin(), managed.end(), is_restored), managed.end(), is_skipped);
}

// Those of the same name as the restored one that no list has, so that no save deletes them.
std::vector<std::string> nobodys(FileSystem& files, const std::string& directory, const std::string& restored,
                                 const CheckpointState& state) {
  std::set<std::string> known{base_name(restored)};
  for (const auto* paths : {&state.all_model_checkpoint_paths, &state.paths_marked_for_deletion}) {
    for (const std::string& path : *paths) known.insert(base_name(path));
  }
  for (const auto& [prefix, kept] : read_retention(files, directory)) known.insert(base_name(prefix));
  std::vector<std::string> found;
  for (const FoundCheckpoint& each : find_checkpoints(files, directory, split_step(base_name(restored)).base)) {
    if (!known.contains(base_name(each.prefix))) found.push_back(base_name(each.prefix));
  }
  return found;
}

void tell_of_nobodys(FileSystem& files, const std::string& directory, const std::string& restored,
                     const CheckpointState& state) {
  constexpr size_t kMostNamed = 5;
  const std::vector<std::string> names = nobodys(files, directory, restored, state);
  if (names.empty()) return;
  log_info(
      "{} has {} checkpoint{} that no save deletes, because {} not in the list that max_to_keep counts (saved by a run "
      "that kept all, saved before a run that started afresh, or kept for good): {}",
      directory, names.size(), names.size() == 1 ? "" : "s", names.size() == 1 ? "it is" : "they are",
      first_names(names, kMostNamed));
}

}  // namespace

void recover_checkpoint_list(Saver& saver, FileSystem& files, const std::string& directory, const FallBack& recovery) {
  const CheckpointState listed = read_checkpoint_state(files, directory).state;
  const std::set<std::string> left_out = canonical(recovery.damaged);
  const std::string restored = canonical_prefix(recovery.restored.value());
  const bool timed = listed.all_model_checkpoint_timestamps.size() == listed.all_model_checkpoint_paths.size();
  std::vector<Managed> managed;
  std::set<std::string> seen;
  for (size_t i = 0; i < listed.all_model_checkpoint_paths.size(); ++i) {
    if (!seen.insert(listed.all_model_checkpoint_paths[i]).second) continue;
    const std::string prefix = prefix_in(files, directory, listed.all_model_checkpoint_paths[i]);
    if (left_out.contains(canonical_prefix(prefix))) continue;
    managed.push_back({prefix, timed ? listed.all_model_checkpoint_timestamps[i] : 0});
  }
  for (const std::string& prefix : recovery.skipped) {
    if (!is_listed(managed, prefix)) managed.push_back({prefix, time_of_commit(files, prefix)});
  }
  if (!is_listed(managed, restored)) managed.push_back({*recovery.restored, time_of_commit(files, *recovery.restored)});
  move_before_restored(canonical(recovery.skipped), restored, managed);

  // What lies here is called by its name here: a spelling with ".." may lead elsewhere, past a symbolic link.
  CheckpointState state{.last_preserved_timestamp = listed.last_preserved_timestamp};
  const std::vector<std::string> names = names_in(files, directory);
  for (const std::string& prefix : listed.paths_marked_for_deletion) {
    if (!lies_in(prefix, directory) || !has_files(names, base_name(prefix))) continue;
    state.paths_marked_for_deletion.push_back(join_path(directory, base_name(prefix)));
  }
  for (const auto& [prefix, time] : managed) {
    if (!lies_in(prefix, directory)) continue;
    state.all_model_checkpoint_paths.push_back(join_path(directory, base_name(prefix)));
    if (timed) state.all_model_checkpoint_timestamps.push_back(time);
  }
  if (saver.to_proto().max_to_keep() > 0) tell_of_nobodys(files, directory, restored, state);
  saver.recover_last_checkpoints(state);
  saver.hold_checkpoints(skipped_before(restored, state.all_model_checkpoint_paths));
}

}  // namespace longhaul
