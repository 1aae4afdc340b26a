#include "longhaul/checkpoint/crash_leftovers.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/checkpoint_files.h"
#include "longhaul/checkpoint/checkpoint_state.h"
#include "longhaul/checkpoint/retention_file.h"
#include "longhaul/checkpoint/set_aside.h"
#include "longhaul/io/directory_lock.h"

namespace longhaul {
namespace {

constexpr std::string_view kData = ".data-", kMeta = ".meta", kTemporary = ".tmp";
constexpr size_t kTokenDigits = 16;

class Sweep {
 public:
  Sweep(FileSystem& files, const std::string& directory, const std::string& basename)
      : files_(files), directory_(directory), basename_(basename), names_(files.list(directory)) {}

  // What has lost a data file already looks damaged.
  void finish_deletions() {
    const CheckpointState state = read_checkpoint_state(files_, directory_).state;
    for (const std::string& doomed : state.doomed_checkpoint_paths) {
      const std::string prefix = join_path(directory_, base_name(doomed));
      if (!committed_prefix(files_, prefix) || checkpoint_exists(files_, prefix)) continue;
      check_directory_owner(files_, prefix);
      remove_checkpoint(files_, prefix);
    }
  }

  void remove_uncommitted() {
    for (const std::string& base : bases_of_data()) {
      if (!is_ours(without_aside(base)) || has_index(base)) continue;
      log_info("{} was never committed, or was being deleted: its files are removed", join_path(directory_, base));
      remove(meta_graph_filename(base));
      for (const std::string& name : names_) {
        if (name.starts_with(base + std::string(kData))) remove(name);
      }
    }
  }

  void remove_meta_graphs_of_the_future() {
    const std::vector<FoundCheckpoint> committed = find_checkpoints(files_, directory_, basename_);
    if (committed.empty() || !committed.back().step) return;
    for (const std::string& name : names_) {
      if (!name.ends_with(kMeta)) continue;
      const std::string base = name.substr(0, name.size() - kMeta.size());
      if (is_ours(base) && !has_index(base) && split_step(base).step > committed.back().step) remove(name);
    }
  }

  void remove_temporaries() {
    for (const std::string& name : names_) {
      if (is_temporary(name)) remove(name);
    }
    remove_stale_temporaries(files_, join_path(directory_, basename_));
  }

 private:
  std::set<std::string> bases_of_data() const {
    std::set<std::string> bases;
    for (const std::string& name : names_) {
      const size_t at = name.find(kData);
      if (at == name.npos) continue;
      const std::string base = name.substr(0, at);
      const auto paths = data_files_of(files_, join_path(directory_, base));
      if (std::find(paths.begin(), paths.end(), join_path(directory_, name)) != paths.end()) bases.insert(base);
    }
    return bases;
  }

  bool is_ours(const std::string& base) const {
    const BaseAndStep parts = split_step(base);
    return basename_.empty() ? parts.step.has_value() : base == basename_ || (parts.step && parts.base == basename_);
  }

  bool has_index(const std::string& base) const {
    const std::string index = index_path(base);
    return std::any_of(names_.begin(), names_.end(),
                       [&](const std::string& name) { return name == index || name == index + ".corrupt"; });
  }

  // What write_file_atomically() makes.
  bool is_temporary(const std::string& name) const {
    const size_t at = name.rfind(kTemporary);
    if (at == name.npos || name.size() != at + kTemporary.size() + kTokenDigits) return false;
    if (name.find_first_not_of("0123456789abcdef", at + kTemporary.size()) != name.npos) return false;
    const std::string target = name.substr(0, at);
    const std::string state = kDefaultStateFile;
    if (target == state || target == base_name(retention_path(directory_)) || target == "graph.pbtxt") return true;
    return target.ends_with(kMeta) && is_ours(target.substr(0, target.size() - kMeta.size()));
  }

  void remove(const std::string& name) {
    const std::string path = join_path(directory_, name);
    check_directory_owner(files_, path);
    remove_if_exists(files_, path);
  }

  FileSystem& files_;
  const std::string directory_, basename_;
  const std::vector<std::string> names_;
};

}  // namespace

void remove_crash_leftovers(FileSystem& files, const std::string& directory, const std::string& basename) {
  if (!files.is_directory(directory)) return;
  Sweep sweep(files, directory, basename);
  sweep.finish_deletions();
  sweep.remove_uncommitted();
  sweep.remove_meta_graphs_of_the_future();
  sweep.remove_temporaries();
}

}  // namespace longhaul
