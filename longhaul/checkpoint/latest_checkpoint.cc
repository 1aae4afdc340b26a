#include "longhaul/checkpoint/latest_checkpoint.h"

#include <algorithm>
#include <set>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/checkpoint_files.h"

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

// What the state names, the latest first.
std::vector<std::string> named_by(const CheckpointState& state) {
  std::vector<std::string> prefixes{state.model_checkpoint_path};
  const auto& all = state.all_model_checkpoint_paths;
  prefixes.insert(prefixes.end(), all.rbegin(), all.rend());
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
  const auto found = found_in(files, directory, basename);
  Candidates candidates;
  if (read.status == ReadCheckpointState::Status::kRead) {
    const double written_at = files.modified_at(join_path(directory, latest_filename));
    for (const auto& checkpoint : found) {
      if (committed_after(checkpoint, read.state.model_checkpoint_path, written_at)) candidates.add(checkpoint.prefix);
    }
    for (const std::string& named : named_by(read.state)) {
      const std::string prefix = prefix_in(files, directory, named);
      if (checkpoint_exists(files, prefix)) candidates.add(prefix);
    }
  }
  for (const auto& checkpoint : found) candidates.add(checkpoint.prefix);
  return candidates.take();
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
