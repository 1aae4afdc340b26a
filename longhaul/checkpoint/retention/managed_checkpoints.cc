#include "longhaul/checkpoint/retention/managed_checkpoints.h"

#include <algorithm>
#include <memory>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/retention_lock.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/lock/directory_claims.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestWait{2};  // for who else changes the retention file

std::string retention_key(const std::string& prefix, const std::string& latest_filename) {
  return retention_path(directory_name(canonical_prefix(prefix)), latest_filename);
}

std::string key_of_held(const ManagedCheckpoints::RecordOptions& options) {
  return options.held.empty() ? "" : canonical_prefix(strip_file_scheme(options.held));
}

KeptCheckpoints with_canonical_prefixes(const KeptCheckpoints& kept) {
  KeptCheckpoints result;
  for (const auto& [prefix, checkpoint] : kept) result[canonical_prefix(prefix)] = checkpoint;
  return result;
}

bool has_files(FileSystem& files, const std::string& prefix) {
  return checkpoint_exists(files, prefix) || !data_files_of(files, prefix).empty() ||
         files.exists(meta_graph_filename(prefix));
}

// What is no file, but has the name of one, gives none back.
uint64_t bytes_in(FileSystem& files, const std::string& path) {
  try {
    return files.open(path)->size();
  } catch (const InvalidArgumentError&) {
    return 0;
  }
}

uint64_t bytes_of(FileSystem& files, const std::vector<std::string>& prefixes) {
  uint64_t bytes = 0;
  for (const std::string& prefix : prefixes) {
    for (const std::string& path : data_files_of(files, prefix)) bytes += bytes_in(files, path);
  }
  return bytes;
}

// 0: of one that is not there.
std::vector<double> commit_times(FileSystem& files, const std::vector<std::string>& prefixes) {
  std::vector<double> times;
  for (const std::string& prefix : prefixes) {
    const std::vector<double> found = checkpoint_mtimes(files, {prefix});
    times.push_back(found.empty() ? 0 : found[0]);
  }
  return times;
}

bool is_intact(FileSystem& files, const std::string& prefix) {
  try {
    return BundleReader(files, prefix).verify().empty();
  } catch (const Error& error) {
    log_warning("checkpoint {} cannot be read: {}", prefix, error.what());
    return false;
  }
}

// Only where this process holds a flock already: on a file system whose flock() hangs, nothing may wait for one
// (LockOptions::with_flock). nullptr: there is none.
std::unique_ptr<RetentionLock> lock_retention(FileSystem& files, Clock& clock, const std::string& directory,
                                              const std::string& latest_filename) {
  const auto claim = DirectoryClaims::of_this_process().find(directory);
  if (!claim || !claim->is_held || !claim->owner.has_flock) return nullptr;
  auto held = std::make_unique<RetentionLock>(files, clock, directory, kLongestWait, latest_filename);
  if (held->state() == RetentionLock::State::kTaken || held->state() == RetentionLock::State::kFailed) {
    log_warning("a pin that is made at this moment may be lost: {}", held->why());
  }
  return held;
}

// What cannot be read may be repaired: so it is still there, under another name, when it is replaced.
void keep_unusable(FileSystem& files, const std::string& path) {
  const std::string kept = path + ".unusable";
  try {
    if (!files.exists(path)) return;
    remove_if_exists(files, kept);
    files.link(path, kept);
    log_warning("{} cannot be used and is replaced; what it was is in {}", path, kept);
  } catch (const Error& error) {
    log_warning("{} cannot be used and is replaced, and could not be kept as {}: {}", path, kept, error.what());
  }
}

void add(CheckpointList& list, const std::string& key, double now, const ManagedCheckpoints::RecordOptions& options) {
  list.add(key, now, options.metric, key_of_held(options));
}

// Whether a reader in any process has pinned it. To be asked after its deletion was announced in the state file: a
// reader looks there after it has pinned.
bool is_read(FileSystem& files, Clock& clock, const std::string& key) {
  const bool is_pinned = read_reader_notes(files, directory_name(key), clock).pinned.contains(base_name(key));
  if (is_pinned) log_info("checkpoint {} is deleted later, because it is being read", key);
  return is_pinned;
}

}  // namespace

void ManagedCheckpoints::name_relatively_in(const std::string& directory) {
  MutexLock lock(mutex_);
  relative_in_.insert(canonical_prefix(directory));
}

void ManagedCheckpoints::record(const std::string& prefix, const RecordOptions& options) {
  MutexLock one_at_a_time(changing_files_);
  const std::vector<std::string> adopted_notes = adopt_retention(prefix, options.latest_filename);
  const double now = clock_.wall_time();
  if (options.before_deletion && would_delete(prefix, now, options)) options.before_deletion();
  {
    MutexLock lock(mutex_);
    add(list_, key_of(prefix), now, options);
  }
  store_retention(prefix, options.latest_filename);
  remove_reader_notes(files_, adopted_notes);
  write_state(prefix, now, options);
  check_directory_owner(files_, prefix);
  remove_marked(prefix, options);
}

// With `prefix` as the newest.
void ManagedCheckpoints::write_state(const std::string& prefix, double now, const RecordOptions& options) {
  CheckpointState state;
  bool relative_paths = options.relative_paths;
  {
    MutexLock lock(mutex_);
    const std::string key = key_of(prefix);
    relative_paths = relative_paths || relative_in_.contains(directory_name(canonical_prefix(prefix)));
    state = list_.state(key, now);
    state.model_checkpoint_path = spelled(key);
    state.all_model_checkpoint_paths = spelled(state.all_model_checkpoint_paths);
    state.paths_marked_for_deletion = spelled(state.paths_marked_for_deletion);
  }
  check_directory_owner(files_, prefix);
  write_checkpoint_state(files_, directory_name(prefix), state, relative_paths, options.latest_filename);
}

bool ManagedCheckpoints::would_delete(const std::string& prefix, double now, const RecordOptions& options) {
  MutexLock lock(mutex_);
  CheckpointList afterwards = list_;
  add(afterwards, key_of(prefix), now, options);
  return !afterwards.marked_for_deletion().empty();
}

bool ManagedCheckpoints::remove_what_fell_out(const std::string& prefix, const RecordOptions& options) {
  MutexLock one_at_a_time(changing_files_);
  adopt_retention(prefix, options.latest_filename);
  const std::vector<std::string> listed = prefixes();
  if (listed.empty() || !checkpoint_exists(files_, listed.back())) return false;
  size_t before;
  {
    MutexLock lock(mutex_);
    list_.mark_what_is_no_longer_held();
    before = list_.marked_for_deletion().size();
  }
  check_directory_owner(files_, prefix);
  remove_marked(prefix, options);
  MutexLock lock(mutex_);
  return list_.marked_for_deletion().size() < before;
}

std::optional<uint64_t> ManagedCheckpoints::remove_oldest(const std::string& prefix, const RecordOptions& options,
                                                          uint64_t missing, const std::function<bool()>& fits) {
  MutexLock one_at_a_time(changing_files_);
  adopt_retention(prefix, options.latest_filename);
  check_directory_owner(files_, prefix);
  {
    MutexLock lock(mutex_);
    list_.hold(key_of_held(options));
  }
  const std::vector<std::string> removable = removable_before(prefix);
  std::optional<uint64_t> removed;
  if (bytes_of(files_, removable) < missing) return removed;
  for (const std::string& oldest : removable) {
    if (removed && fits()) break;
    log_warning("there is no room for {}: checkpoint {} is deleted before its turn", prefix, oldest);
    const uint64_t bytes = bytes_of(files_, {oldest});
    if (drop(oldest, prefix, options)) removed = removed.value_or(0) + bytes;
  }
  return removed;
}

// Their keys, the oldest first.
std::vector<std::string> ManagedCheckpoints::removable_before(const std::string& prefix) const {
  std::vector<std::string> listed, droppable;
  {
    MutexLock lock(mutex_);
    listed = list_.prefixes();
    droppable = list_.droppable();
  }
  if (droppable.empty()) return {};
  const auto newest_intact =
      std::find_if(listed.rbegin(), listed.rend(), [&](const std::string& one) { return is_intact(files_, one); });
  const std::set<std::string> read = read_reader_notes(files_, directory_name(canonical_prefix(prefix)), clock_).pinned;
  const std::set<std::string> older(newest_intact == listed.rend() ? listed.rend() : newest_intact + 1, listed.rend());
  const std::string replaced = canonical_prefix(prefix);
  std::erase_if(droppable, [&](const std::string& key) {
    return !older.contains(key) || key == replaced || directory_name(key) != directory_name(replaced) ||
           read.contains(base_name(key));
  });
  return droppable;
}

// It is taken from the state file first, as in any save. A disk on which not even that fits gets it the other way
// round. False: it is there still.
bool ManagedCheckpoints::drop(const std::string& key, const std::string& prefix, const RecordOptions& options) {
  std::string newest;
  {
    MutexLock lock(mutex_);
    list_.drop(key);
    newest = spelled(list_.prefixes().back());
  }
  try {
    write_state(newest, clock_.wall_time(), options);
  } catch (const DirectoryLostError&) {
    throw;
  } catch (const Error& error) {
    log_warning("deleting checkpoint {} although the state file still names it: {}", key, error.what());
  }
  check_directory_owner(files_, prefix);
  return !is_read(files_, clock_, key) && remove_old(key, options.meta_graph_suffix);
}

void ManagedCheckpoints::remove_marked(const std::string& prefix, const RecordOptions& options) {
  std::vector<std::string> marked;
  {
    MutexLock lock(mutex_);
    marked = list_.marked_for_deletion();
  }
  if (!marked.empty() && adopt_file(prefix, options.latest_filename)) {  // one may just have been pinned
    MutexLock lock(mutex_);
    marked = list_.marked_for_deletion();
  }
  tell_of_deletions(marked, prefix);
  bool all_removed = true;
  for (const std::string& key : marked) {
    all_removed = !is_read(files_, clock_, key) && remove_old(key, options.meta_graph_suffix) && all_removed;
  }
  if (all_removed) return;
  try {
    replace_retention(prefix, options.latest_filename);
  } catch (const Error& error) {
    log_warning("failed deletions will not be retried after a restart: {}", error.what());
  }
}

// That old checkpoints of the training are deleted goes without saying, but not that one with a name of its own is.
void ManagedCheckpoints::tell_of_deletions(const std::vector<std::string>& marked, const std::string& newest) {
  for (const std::string& key : marked) {
    if (base_name(split_step(key).base) == base_name(split_step(newest).base)) continue;
    log_info(
        "checkpoint {} is deleted: newer ones have displaced it (SaverOptions::max_to_keep). To keep one, pin() it, or "
        "save it with SaveOptions::write_state = false",
        key);
  }
  MutexLock lock(mutex_);
  if (marked.empty() || !list_.lacks_metrics() || std::exchange(told_of_metrics_, true)) return;
  log_warning(
      "SaverOptions::best keeps the checkpoints with the best metric, but no checkpoint has one, and {} is deleted: "
      "pass "
      "SaveOptions::metric to save()",
      marked.front());
}

// By its key, which no change of the working directory makes another file's.
bool ManagedCheckpoints::remove_old(const std::string& key, const std::string& meta_graph_suffix) {
  try {
    remove_checkpoint(files_, key, meta_graph_suffix);
  } catch (const Error& error) {
    log_warning("checkpoint {} could not be deleted, and the deletion will be retried: {}", key, error.what());
    return false;
  }
  MutexLock lock(mutex_);
  list_.forget_marked(key);
  return true;
}

std::string ManagedCheckpoints::key_of(const std::string& prefix) {
  const std::string path = strip_file_scheme(prefix), key = canonical_prefix(path);
  spelling_[directory_name(key)] = path.substr(0, path.size() - base_name(path).size());
  return key;
}

std::string ManagedCheckpoints::spelled(const std::string& key) const {
  const auto spelling = spelling_.find(directory_name(key));
  return spelling == spelling_.end() ? key : spelling->second + base_name(key);
}

std::vector<std::string> ManagedCheckpoints::spelled(std::vector<std::string> keys) const {
  for (std::string& key : keys) key = spelled(key);
  return keys;
}

std::vector<std::string> ManagedCheckpoints::prefixes() const {
  MutexLock lock(mutex_);
  return spelled(list_.prefixes());
}

void ManagedCheckpoints::reset(const std::vector<std::string>& prefixes) {
  const std::vector<double> times = commit_times(files_, prefixes);
  MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const std::string& prefix : prefixes) keys.push_back(key_of(prefix));
  list_.reset(keys, times);
}

void ManagedCheckpoints::recover(const CheckpointState& state) {
  const std::vector<std::string>& paths = state.all_model_checkpoint_paths;
  const bool timed = state.all_model_checkpoint_timestamps.size() == paths.size();
  const std::vector<double> all_times = timed ? state.all_model_checkpoint_timestamps : commit_times(files_, paths);
  std::vector<std::string> existing, keys;
  std::vector<double> times;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!checkpoint_exists(files_, paths[i])) continue;
    existing.push_back(paths[i]);
    times.push_back(all_times[i]);
  }
  MutexLock one_at_a_time(changing_files_);
  {
    MutexLock lock(mutex_);
    for (const std::string& prefix : existing) keys.push_back(key_of(prefix));
    list_.reset(keys, times);
    list_.set_last_preserved(state.last_preserved_timestamp, clock_.wall_time());
  }
  std::set<std::string> seen;
  for (const std::string& prefix : existing) {
    if (seen.insert(directory_name(prefix)).second) adopt_retention(prefix, kDefaultStateFile);
  }
  for (const std::string& prefix : state.paths_marked_for_deletion) {
    if (!has_files(files_, prefix)) continue;
    MutexLock lock(mutex_);
    list_.mark_for_deletion(key_of(prefix));
  }
}

void ManagedCheckpoints::hold(const std::vector<std::string>& prefixes) {
  MutexLock lock(mutex_);
  for (const std::string& prefix : prefixes) list_.hold(key_of(prefix));
}

void ManagedCheckpoints::keep_behind(int64_t steps) {
  MutexLock lock(mutex_);
  list_.keep_behind(steps);
}

bool ManagedCheckpoints::adopt_file(const std::string& prefix, const std::string& latest_filename) {
  const auto found = find_retention(files_, directory_name(prefix), latest_filename);
  if (!found) return false;  // it is not written yet, or damaged: nobody has said anything
  const KeptCheckpoints now = with_canonical_prefixes(*found);
  KeptCheckpoints existing = now;
  std::erase_if(existing, [&](const auto& item) { return !checkpoint_exists(files_, item.first); });
  MutexLock lock(mutex_);
  KeptCheckpoints& before = adopted_[retention_key(prefix, latest_filename)];
  list_.adopt(existing, before);
  before = now;
  return true;
}

std::vector<std::string> ManagedCheckpoints::adopt_retention(const std::string& prefix,
                                                             const std::string& latest_filename) {
  adopt_file(prefix, latest_filename);
  return adopt_metrics(directory_name(prefix));
}

std::vector<std::string> ManagedCheckpoints::adopt_metrics(const std::string& directory) {
  const ReaderNotes notes = read_reader_notes(files_, directory, clock_);
  remove_reader_notes(files_, notes.worthless);
  std::vector<std::string> adopted;
  for (const ReaderNotes::Metric& metric : notes.metrics) {
    adopted.push_back(metric.path);
    const std::string prefix = join_path(directory, metric.checkpoint);
    if (!checkpoint_exists(files_, prefix)) {
      log_warning(
          "the metric {} of checkpoint {} came too late: it is deleted. Its reader holds a CheckpointPin until "
          "it has written the metric",
          metric.value, prefix);
      continue;
    }
    MutexLock lock(mutex_);
    list_.take_metric(canonical_prefix(prefix), metric.value);
    if (list_.keeps_best() || std::exchange(told_of_metrics_, true)) continue;
    log_warning(
        "checkpoint {} got the metric {} from a reader, but no checkpoint is kept for its metric: SaverOptions::best "
        "has top_k = 0",
        prefix, metric.value);
  }
  return adopted;
}

KeptCheckpoints ManagedCheckpoints::retention_in(const std::string& directory) const {
  MutexLock lock(mutex_);
  KeptCheckpoints kept = list_.kept();
  for (const std::string& key : list_.marked_for_deletion())
    kept[key] = {.fallen_out = true};  // the next process may have to do it
  std::erase_if(kept, [&](const auto& item) { return directory_name(item.first) != directory; });
  return kept;
}

void ManagedCheckpoints::store_retention(const std::string& prefix, const std::string& latest_filename) {
  const KeptCheckpoints kept = retention_in(directory_name(canonical_prefix(prefix)));
  const bool is_needed =
      std::any_of(kept.begin(), kept.end(), [](const auto& item) { return item.second.pinned || item.second.metric; });
  if (!is_needed && !files_.exists(retention_path(directory_name(prefix), latest_filename))) return;
  replace_retention(prefix, latest_filename);
}

// Changes that others make meanwhile wait for the lock, or were made before it is read again here.
void ManagedCheckpoints::replace_retention(const std::string& prefix, const std::string& latest_filename) {
  const auto held = lock_retention(files_, clock_, directory_name(prefix), latest_filename);
  if (!adopt_file(prefix, latest_filename)) {
    keep_unusable(files_, retention_path(directory_name(prefix), latest_filename));
  }
  const KeptCheckpoints kept = retention_in(directory_name(canonical_prefix(prefix)));
  check_directory_owner(files_, prefix);
  write_retention(files_, directory_name(prefix), kept, latest_filename);
  MutexLock lock(mutex_);
  adopted_[retention_key(prefix, latest_filename)] = kept;
}

void ManagedCheckpoints::pin(const std::string& prefix, const std::string& latest_filename) {
  MutexLock one_at_a_time(changing_files_);
  if (!checkpoint_exists(files_, prefix)) throw NotFoundError("there is no checkpoint to pin: " + prefix);
  adopt_retention(prefix, latest_filename);
  {
    MutexLock lock(mutex_);
    list_.pin(key_of(prefix));
  }
  store_retention(prefix, latest_filename);
}

void ManagedCheckpoints::unpin(const std::string& prefix, const std::string& latest_filename) {
  MutexLock one_at_a_time(changing_files_);
  adopt_retention(prefix, latest_filename);
  {
    MutexLock lock(mutex_);
    list_.unpin(key_of(prefix));
  }
  store_retention(prefix, latest_filename);
}

std::vector<std::string> ManagedCheckpoints::pinned() const {
  MutexLock lock(mutex_);
  return spelled(list_.pinned());
}

std::vector<std::string> ManagedCheckpoints::best() const {
  MutexLock lock(mutex_);
  return spelled(list_.best());
}

}  // namespace longhaul
