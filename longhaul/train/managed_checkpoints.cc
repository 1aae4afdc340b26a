#include "longhaul/train/managed_checkpoints.h"

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/checkpoint_files.h"

namespace longhaul {

void ManagedCheckpoints::record(const std::string& prefix, const RecordOptions& options) {
  const std::string directory = directory_name(prefix);
  MutexLock one_at_a_time(changing_files_);
  adopt_retention(directory, options.latest_filename);
  const double now = clock_.wall_time();
  CheckpointState state;
  std::vector<std::string> doomed;
  {
    MutexLock lock(mutex_);
    list_.add(prefix, now, options.metric);
    state = list_.state(prefix, now);
    doomed = list_.doomed();
  }
  store_retention(directory, options.latest_filename);
  write_checkpoint_state(files_, directory, state, options.relative_paths, options.latest_filename);
  for (const std::string& old : doomed) remove_old(old, options.meta_graph_suffix);
}

void ManagedCheckpoints::remove_old(const std::string& prefix, const std::string& meta_graph_suffix) {
  try {
    remove_checkpoint(files_, prefix, meta_graph_suffix);
  } catch (const Error& error) {
    log_warning("checkpoint {} could not be deleted, and will be tried again: {}", prefix, error.what());
    return;
  }
  MutexLock lock(mutex_);
  list_.forget_doomed(prefix);
}

std::vector<std::string> ManagedCheckpoints::prefixes() const {
  MutexLock lock(mutex_);
  return list_.prefixes();
}

std::vector<double> ManagedCheckpoints::commit_times(const std::vector<std::string>& prefixes) const {
  std::vector<double> times;
  for (const std::string& prefix : prefixes) {
    const std::vector<double> found = checkpoint_mtimes(files_, {prefix});
    times.push_back(found.empty() ? 0 : found[0]);
  }
  return times;
}

void ManagedCheckpoints::reset(const std::vector<std::string>& prefixes) {
  const std::vector<double> times = commit_times(prefixes);
  MutexLock lock(mutex_);
  list_.reset(prefixes, times);
}

void ManagedCheckpoints::recover(const CheckpointState& state) {
  const std::vector<std::string>& paths = state.all_model_checkpoint_paths;
  const bool timed = state.all_model_checkpoint_timestamps.size() == paths.size();
  const std::vector<double> all_times = timed ? state.all_model_checkpoint_timestamps : commit_times(paths);
  std::vector<std::string> existing;
  std::vector<double> times;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!checkpoint_exists(files_, paths[i])) continue;
    existing.push_back(paths[i]);
    times.push_back(all_times[i]);
  }
  MutexLock one_at_a_time(changing_files_);
  {
    MutexLock lock(mutex_);
    list_.reset(existing, times);
    list_.set_last_preserved(state.last_preserved_timestamp, clock_.wall_time());
  }
  for (const std::string& prefix : existing) adopt_retention(directory_name(prefix), kDefaultStateFile);
}

void ManagedCheckpoints::adopt_retention(const std::string& directory, const std::string& latest_filename) {
  const std::string path = retention_path(directory, latest_filename);
  {
    MutexLock lock(mutex_);
    if (!adopted_.insert(path).second) return;
  }
  KeptCheckpoints kept = read_retention(files_, directory, latest_filename);
  std::erase_if(kept, [&](const auto& item) { return !checkpoint_exists(files_, item.first); });
  MutexLock lock(mutex_);
  list_.adopt(kept);
}

void ManagedCheckpoints::store_retention(const std::string& directory, const std::string& latest_filename) {
  KeptCheckpoints kept;
  std::vector<std::string> doomed;
  {
    MutexLock lock(mutex_);
    kept = list_.kept();
    doomed = list_.doomed();
  }
  if (kept.empty() && !files_.exists(retention_path(directory, latest_filename))) return;
  for (const std::string& prefix : doomed) kept[prefix] = {.fallen_out = true};  // the next process may have to do it
  std::erase_if(kept, [&](const auto& item) { return directory_name(item.first) != directory; });
  write_retention(files_, directory, kept, latest_filename);
}

void ManagedCheckpoints::pin(const std::string& prefix, const std::string& latest_filename) {
  MutexLock one_at_a_time(changing_files_);
  if (!checkpoint_exists(files_, prefix)) throw NotFoundError("there is no checkpoint to pin: " + prefix);
  adopt_retention(directory_name(prefix), latest_filename);
  {
    MutexLock lock(mutex_);
    list_.pin(prefix);
  }
  store_retention(directory_name(prefix), latest_filename);
}

void ManagedCheckpoints::unpin(const std::string& prefix, const std::string& latest_filename) {
  MutexLock one_at_a_time(changing_files_);
  adopt_retention(directory_name(prefix), latest_filename);
  {
    MutexLock lock(mutex_);
    list_.unpin(prefix);
  }
  store_retention(directory_name(prefix), latest_filename);
}

std::vector<std::string> ManagedCheckpoints::pinned() const {
  MutexLock lock(mutex_);
  return list_.pinned();
}

std::vector<std::string> ManagedCheckpoints::best() const {
  MutexLock lock(mutex_);
  return list_.best();
}

}  // namespace longhaul
