#include "longhaul/train/checkpointing/mirror_list.h"

#include <string>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

std::string unlisted_path(const std::string& directory) {
  return join_path(directory, "checkpoint.unlisted");
}

}  // namespace

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

// In place: a temporary file could be left behind, and half of a file says that the copy has not begun.
void write_unlisted(FileSystem& mirror_files, const std::string& directory, const std::string& name) {
  const auto file = mirror_files.create(unlisted_path(directory));
  file->append(name + "\n");
  file->sync();
  file->close();
}

void remove_unlisted(FileSystem& mirror_files, const std::string& directory) {
  remove_if_exists(mirror_files, unlisted_path(directory));
}

std::string read_unlisted(FileSystem& mirror_files, const std::string& directory) {
  constexpr size_t kMostBytes = 4096;
  const std::string path = unlisted_path(directory);
  if (!mirror_files.exists(path)) return "";
  std::string text(kMostBytes, '\0');
  text.resize(mirror_files.open(path)->read(0, text.data(), text.size()));
  return text.ends_with('\n') ? base_name(text.substr(0, text.size() - 1)) : "";
}

}  // namespace longhaul
