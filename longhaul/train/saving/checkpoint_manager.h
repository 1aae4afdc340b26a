#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/train/saving/saver.h"

namespace longhaul {

struct CheckpointManagerOptions {
  std::string directory{};
  std::optional<int> max_to_keep{};                       // absent: all are kept and listed
  std::optional<double> keep_checkpoint_every_n_hours{};  // absent: never
  std::string checkpoint_name = "ckpt";
  // The variables to save, their graph, the file system and the clock. The saver's retention options and
  // save_relative_paths are ignored.
  SaverOptions saver{};
};

// Numbers the checkpoints of a directory and keeps the last few of them. After a restart it continues the numbering and
// the list.
//
//   CheckpointManager manager({.directory = "runs/demo", .max_to_keep = 3, .saver = {.graph = &graph}});
//   if (auto latest = manager.latest_checkpoint()) manager.saver().restore(session, *latest);
//   manager.save(session);  // runs/demo/ckpt-1.{index,data-...}
//
// It adds a variable "save_counter" to the graph, which is saved with the others, so numbering continues where a
// restored checkpoint left off. It manages the checkpoints that have its checkpoint_name and a time in the state file.
// Other checkpoints in the directory are neither listed nor deleted. It writes no meta graphs.
//
// Construct it before the init op is built, so that the init op initialises the counter. Any thread may call.
class CheckpointManager {
 public:
  // InvalidArgumentError: max_to_keep is not positive, or no directory. Also throws what Saver's constructor throws.
  explicit CheckpointManager(CheckpointManagerOptions options);

  // Counts, saves, and deletes surplus checkpoints; returns the prefix, <directory>/<name>-<number>. The number is the
  // counter's, unless one is given as a number or a tensor.
  std::string save(Session& session, const StepSource& checkpoint_number = {});

  std::vector<std::string> checkpoints() const { return saver_.last_checkpoints(); }  // those managed, oldest first
  // The newest in the directory, managed or not. nullopt: none.
  std::optional<std::string> latest_checkpoint() const;

  const std::string& directory() const { return options_.directory; }
  const Variable& save_counter() const { return counter_; }
  Saver& saver() { return saver_; }

 private:
  void recover();
  bool is_own(const std::string& prefix) const;

  const CheckpointManagerOptions options_;
  const Variable counter_;
  const Output count_;
  Saver saver_;
};

}  // namespace longhaul
