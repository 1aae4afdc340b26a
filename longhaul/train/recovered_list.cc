#include "longhaul/train/recovered_list.h"

#include <set>

#include "longhaul/checkpoint/checkpoint_files.h"

namespace longhaul {
void recover_checkpoint_list(Saver& saver, FileSystem& files, const std::string& directory,
                             const std::vector<std::string>& damaged, const std::string& restored) {
  const CheckpointState listed = read_checkpoint_state(files, directory).state;
  std::set<std::string> left_out;
  for (const std::string& prefix : damaged) left_out.insert(canonical_prefix(prefix));
  CheckpointState managed{.last_preserved_timestamp = listed.last_preserved_timestamp};
  const bool timed = listed.all_model_checkpoint_timestamps.size() == listed.all_model_checkpoint_paths.size();
  const auto add = [&](const std::string& prefix, double time) {
    if (directory_name(canonical_prefix(prefix)) != canonical_prefix(directory)) return;
    managed.all_model_checkpoint_paths.push_back(prefix);
    if (timed) managed.all_model_checkpoint_timestamps.push_back(time);
  };
  bool has_restored = false;
  for (size_t i = 0; i < listed.all_model_checkpoint_paths.size(); ++i) {
    const std::string prefix = prefix_in(files, directory, listed.all_model_checkpoint_paths[i]);
    if (left_out.contains(canonical_prefix(prefix))) continue;
    has_restored = has_restored || canonical_prefix(prefix) == canonical_prefix(restored);
    add(prefix, timed ? listed.all_model_checkpoint_timestamps[i] : 0);
  }
  const std::vector<double> committed = checkpoint_mtimes(files, {restored});
  if (!has_restored) add(restored, committed.empty() ? 0 : committed[0]);
  saver.recover_last_checkpoints(managed);
}

}  // namespace longhaul
