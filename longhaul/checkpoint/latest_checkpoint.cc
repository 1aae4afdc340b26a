#include "longhaul/checkpoint/latest_checkpoint.h"

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/checkpoint_files.h"

namespace longhaul {
namespace {

void add_once(std::vector<std::string>& prefixes, const std::string& prefix) {
  if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) prefixes.push_back(prefix);
}

// Newest first.
std::vector<FoundCheckpoint> with_steps(FileSystem& files, const std::string& directory, const std::string& basename) {
  auto found = find_checkpoints(files, directory, basename);
  std::erase_if(found, [](const FoundCheckpoint& checkpoint) { return !checkpoint.step; });
  std::reverse(found.begin(), found.end());
  return found;
}

// What the state names, the latest first.
std::vector<std::string> named_by(const CheckpointState& state) {
  std::vector<std::string> prefixes{state.model_checkpoint_path};
  const auto& all = state.all_model_checkpoint_paths;
  for (auto it = all.rbegin(); it != all.rend(); ++it) add_once(prefixes, *it);
  return prefixes;
}

bool committed_after(const FoundCheckpoint& checkpoint, const std::string& latest, double state_written_at) {
  const BaseAndStep parts = split_step(base_name(latest));
  const bool same_base = split_step(base_name(checkpoint.prefix)).base == parts.base;
  return same_base && parts.step && checkpoint.step > parts.step && checkpoint.modified_at > state_written_at;
}

}  // namespace

std::vector<std::string> checkpoint_candidates(FileSystem& files, const std::string& directory,
                                               const std::string& basename, const std::string& latest_filename) {
  const auto read = read_checkpoint_state(files, directory, latest_filename);
  if (!read.why.empty()) log_warning("{}; searching the directory instead", read.why);
  const auto found = with_steps(files, directory, basename);
  std::vector<std::string> candidates;
  if (read.status == ReadCheckpointState::Status::kRead) {
    const double written_at = files.modified_at(join_path(directory, latest_filename));
    for (const auto& checkpoint : found) {
      if (committed_after(checkpoint, read.state.model_checkpoint_path, written_at))
        candidates.push_back(checkpoint.prefix);
    }
    for (const std::string& prefix : named_by(read.state)) {
      if (checkpoint_exists(files, prefix)) add_once(candidates, prefix);
    }
  }
  for (const auto& checkpoint : found) add_once(candidates, checkpoint.prefix);
  return candidates;
}

std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory,
                                             const std::string& latest_filename) {
  const auto candidates = checkpoint_candidates(files, directory, "", latest_filename);
  if (candidates.empty()) return std::nullopt;
  return candidates.front();
}

WholeCheckpoint newest_whole_checkpoint(FileSystem& files, const std::string& directory, const std::string& basename,
                                        const std::string& latest_filename) {
  WholeCheckpoint result;
  for (const std::string& prefix : checkpoint_candidates(files, directory, basename, latest_filename)) {
    try {
      const auto damages = BundleReader(files, prefix).verify();
      if (damages.empty()) {
        result.prefix = prefix;
        return result;
      }
      result.skipped.push_back({prefix, damages.front()});
    } catch (const Error& error) {
      result.skipped.push_back({prefix, error.what()});
    }
  }
  return result;
}

}  // namespace longhaul
