#include "longhaul/train/checkpointing/mirror_list.h"

#include <string>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {

CheckpointState read_mirror_list(FileSystem& mirror_files, const MirrorOptions& options) {
  const std::string path = join_path(options.directory, kDefaultStateFile);
  if (mirror_files.exists(path)) read_file(mirror_files, path);  // what throws is not damage
  ReadCheckpointState read = read_checkpoint_state(mirror_files, options.directory);
  if (options.renames || read.status != ReadCheckpointState::Status::kUnusable) return read.state;
  log_warning("the list of checkpoints in the mirror {} is rebuilt: {}", options.directory, read.why);
  CheckpointState state;
  std::vector<std::string>& paths = state.all_model_checkpoint_paths;
  for (const FoundCheckpoint& found : find_checkpoints(mirror_files, options.directory, "")) {
    if (found.step) paths.push_back(found.prefix);
  }
  const auto most = static_cast<size_t>(options.max_to_keep);
  if (most > 0 && paths.size() > most) paths.erase(paths.begin(), paths.end() - options.max_to_keep);
  return state;
}

}  // namespace longhaul
