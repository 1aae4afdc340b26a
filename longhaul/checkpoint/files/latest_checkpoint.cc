#include "longhaul/checkpoint/files/latest_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

// Prefixes, each once however it is spelled.
class Candidates {
 public:
  void add(const std::string& prefix) {
    if (seen_.insert(canonical_prefix(prefix)).second) prefixes_.push_back(prefix);
  }
  std::vector<std::string> take() { return std::move(prefixes_); }

 private:
  std::vector<std::string> prefixes_;
  std::set<std::string> seen_;
};

// Newest first, the one without a step last.
std::vector<FoundCheckpoint> found_in(FileSystem& files, const std::string& directory, const std::string& basename) {
  auto found = find_checkpoints(files, directory, basename);
  if (basename.empty()) std::erase_if(found, [](const FoundCheckpoint& checkpoint) { return !checkpoint.step; });
  std::reverse(found.begin(), found.end());
  return found;
}

// What the state names, the latest first, each once.
std::vector<std::string> named_by(const CheckpointState& state) {
  std::vector<std::string> prefixes{state.model_checkpoint_path};
  const auto& all = state.all_model_checkpoint_paths;
  prefixes.insert(prefixes.end(), all.rbegin(), all.rend());
  std::set<std::string> seen;
  std::erase_if(prefixes, [&](const std::string& prefix) { return !seen.insert(prefix).second; });
  return prefixes;
}

// A place where this user may not look is another's, of which the directory is a copy.
bool is_there(FileSystem& files, const std::string& prefix) {
  try {
    return checkpoint_exists(files, prefix);
  } catch (const PermissionDeniedError& error) {
    log_warning("checkpoint {} is skipped: {}", excerpt(prefix), error.what());
    return false;
  }
}

bool committed_after(const FoundCheckpoint& checkpoint, const std::string& latest, double state_written_at) {
  const BaseAndStep parts = split_step(base_name(latest));
  const bool same_base = split_step(base_name(checkpoint.prefix)).base == parts.base;
  return same_base && parts.step && checkpoint.step > parts.step && checkpoint.modified_at > state_written_at;
}

// -1: it has none.
int64_t step_of(const std::string& prefix) {
  return split_step(base_name(prefix)).step.value_or(-1);
}

bool has_later_step(const std::string& prefix, const std::string& than) {
  return step_of(prefix) > step_of(than);
}

using Prefixes = std::vector<std::string>;

// What the state names and is there.
Prefixes listed_and_there(FileSystem& files, const std::string& directory, const CheckpointState& state) {
  Prefixes there;
  for (const std::string& named : named_by(state)) {
    const std::string prefix = prefix_in(files, directory, named);
    if (is_there(files, prefix)) there.push_back(prefix);
  }
  return there;
}

// A state whose latest is not there does not say which is the newest. Of the names that it has, the directory may have
// later ones than it lists.
Prefixes without_its_latest(const CheckpointState& state, const Prefixes& listed,
                            const std::vector<FoundCheckpoint>& found) {
  std::set<std::string> bases;
  for (const std::string& named : named_by(state)) bases.insert(split_step(base_name(named)).base);
  Prefixes newest_first = listed;
  for (const FoundCheckpoint& checkpoint : found) {
    if (bases.contains(split_step(base_name(checkpoint.prefix)).base)) newest_first.push_back(checkpoint.prefix);
  }
  std::stable_sort(newest_first.begin(), newest_first.end(), has_later_step);
  return newest_first;
}

// As damaged: what came before it was taken then, and is now.
bool was_renamed(FileSystem& files, const std::string& prefix) {
  return files.exists(index_path(prefix) + ".corrupt");
}

void warn_of_lost_latest(FileSystem& files, const std::string& state_path, const std::string& latest,
                         const Prefixes& newest_first) {
  if (newest_first.empty()) return;
  const bool has_index = committed_prefix(files, latest).has_value();
  log_warning("{} names {} as the latest checkpoint, but {}: using the newest existing one instead, {}", state_path,
              excerpt(latest), has_index ? "some of its files are missing" : "it does not exist", newest_first.front());
}

// Asked before the state is read: a trainer may replace it in between, and a checkpoint that the old state does not
// name is newer than the old one, but not than the new one. 0: it cannot be asked, as the read then tells.
double written_at_of(FileSystem& files, const std::string& state_path) {
  try {
    return files.modified_at(state_path);
  } catch (const Error&) {
    return 0;
  }
}

bool begins_with_latest(const std::vector<std::string>& candidates) {
  return std::none_of(candidates.begin(), candidates.end(),
                      [&](const std::string& each) { return has_later_step(each, candidates.front()); });
}

}  // namespace

std::vector<std::string> checkpoint_candidates(FileSystem& files, const std::string& directory,
                                               const std::string& basename, const std::string& latest_filename) {
  const double written_at = written_at_of(files, join_path(directory, latest_filename));
  const auto read = read_checkpoint_state(files, directory, latest_filename);
  if (!read.why.empty()) log_warning("{}; searching the directory instead", read.why);
  const auto found = found_in(files, directory, basename);
  Candidates candidates;
  if (read.status == ReadCheckpointState::Status::kRead) {
    const Prefixes listed = listed_and_there(files, directory, read.state);
    const std::string latest = prefix_in(files, directory, read.state.model_checkpoint_path);
    const bool is_there = std::find(listed.begin(), listed.end(), latest) != listed.end();
    if (!is_there && !was_renamed(files, latest)) {
      const Prefixes newest_first = without_its_latest(read.state, listed, found);
      warn_of_lost_latest(files, join_path(directory, latest_filename), latest, newest_first);
      for (const std::string& prefix : newest_first) candidates.add(prefix);
    }
    for (const auto& checkpoint : found) {
      if (committed_after(checkpoint, read.state.model_checkpoint_path, written_at)) candidates.add(checkpoint.prefix);
    }
    for (const std::string& prefix : listed) candidates.add(prefix);
  }
  for (const auto& checkpoint : found) candidates.add(checkpoint.prefix);
  return candidates.take();
}

std::vector<std::string> mirrored_candidates(FileSystem& files, const std::string& directory, const std::string& mirror,
                                             const std::string& basename) {
  std::vector<std::string> mirrored = checkpoint_candidates(files, mirror, basename);
  std::erase_if(mirrored, [&](const std::string& prefix) {  // its state file may name others, of which it is a copy
    return directory_name(canonical_prefix(prefix)) != canonical_prefix(mirror);
  });
  const std::vector<std::string> own = checkpoint_candidates(files, directory, basename);
  std::vector<std::string> merged = own;
  if (!begins_with_latest(own)) {
    merged.insert(merged.end(), mirrored.begin(), mirrored.end());
    return merged;
  }
  merged.resize(own.size() + mirrored.size());
  std::merge(own.begin(), own.end(), mirrored.begin(), mirrored.end(), merged.begin(), has_later_step);
  return merged;
}

std::vector<std::string> listed_prefixes(FileSystem& files, const std::string& directory) {
  const auto read = read_checkpoint_state(files, directory);
  if (read.status == ReadCheckpointState::Status::kMissing) return {};
  if (read.status == ReadCheckpointState::Status::kUnusable) {
    throw DataLossError(
        fmt::format("{}. Without search_directory only this file says which checkpoints count: restore it, or set "
                    "search_directory to search {}, or remove the file to start over",
                    read.why, directory));
  }
  Prefixes listed;
  for (const std::string& named : named_by(read.state)) listed.push_back(prefix_in(files, directory, named));
  return listed;
}

std::vector<std::string> listed_candidates(FileSystem& files, const std::string& directory, const std::string& mirror) {
  std::set<std::string> mirrored;
  if (!mirror.empty()) {
    for (const std::string& prefix : listed_prefixes(files, mirror)) mirrored.insert(base_name(prefix));
  }
  Candidates candidates;
  for (const std::string& prefix : listed_prefixes(files, directory)) {
    if (is_there(files, prefix)) candidates.add(prefix);
    const std::string copy = join_path(mirror, base_name(prefix));
    if (mirrored.contains(base_name(prefix)) && is_there(files, copy)) candidates.add(copy);
  }
  return candidates.take();
}

std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory,
                                             const std::string& latest_filename) {
  const auto candidates = checkpoint_candidates(files, directory, "", latest_filename);
  if (candidates.empty()) return std::nullopt;
  return candidates.front();
}

}  // namespace longhaul
