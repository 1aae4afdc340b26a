#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/directory/reader_notes.h"
#include "longhaul/checkpoint/retention/checkpoint_list.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// The checkpoints that a Saver manages, in memory and on disk. Writes the state file and the file of pins and metrics,
// and deletes old checkpoints. All spellings of a prefix (relative, absolute, with "./") mean the same checkpoint;
// returned prefixes use the spelling with which their directory was last named. Any thread may call.
class ManagedCheckpoints {
 public:
  ManagedCheckpoints(const Retention& retention, FileSystem& files, Clock& clock)
      : files_(files), clock_(clock), list_(retention, clock.wall_time()) {}

  struct RecordOptions {
    std::string latest_filename = kDefaultStateFile;
    std::string meta_graph_suffix = "meta";
    bool relative_paths = false;
    std::optional<double> metric{};
    std::string held{};  // stays listed even if this one is of a later step: CheckpointList::add(); empty: none
    std::function<void()> before_deletion{};  // called if there is something to delete; record() throws its exceptions
  };
  // Call it after `prefix` was committed. Lists the checkpoint, replaces the state and retention files, and then
  // deletes the checkpoints that retention drops. A failed deletion is logged, recorded in a file, and retried by the
  // next call, even after a restart; so is one of a checkpoint that a reader has pinned (reader_notes.h). Takes over
  // pins and metrics that other savers and processes have written since the last call.
  void record(const std::string& prefix, const RecordOptions& options);

  // For a full disk: retries deletions that failed, here or in earlier processes, unless the newest listed checkpoint
  // does not exist. `prefix` is the checkpoint about to be written. Returns whether anything was deleted.
  bool remove_what_fell_out(const std::string& prefix, const RecordOptions& options);

  // Also for a full disk: deletes listed checkpoints before their turn, oldest first, until `fits()`. Deletes only
  // those that newer ones would displace (CheckpointList::droppable()), that are in the directory of `prefix`, and that
  // are older than the newest intact one, which is read to find out. Deletes none if all of these together have less
  // than `missing` bytes. Returns the number of data bytes deleted, or nullopt if no checkpoint was deleted.
  std::optional<uint64_t> remove_oldest(const std::string& prefix, const RecordOptions& options, uint64_t missing,
                                        const std::function<bool()>& fits);

  // From now on, the state file of that directory uses relative paths for checkpoints in it, whatever the RecordOptions
  // are.
  void name_relatively_in(const std::string& directory);

  std::vector<std::string> prefixes() const;
  void reset(const std::vector<std::string>& prefixes);
  // Lists the checkpoints of the state that exist, with the pins and metrics from the file next to the state file.
  void recover(const CheckpointState& state);

  // Those of these prefixes that are listed are not deleted until a checkpoint of a later step is recorded.
  void hold(const std::vector<std::string>& prefixes);

  void keep_behind(int64_t steps);  // CheckpointList::keep_behind()

  // NotFoundError: there is no such checkpoint to pin.
  void pin(const std::string& prefix, const std::string& latest_filename);
  void unpin(const std::string& prefix, const std::string& latest_filename);
  std::vector<std::string> pinned() const;
  std::vector<std::string> best() const;

 private:
  // Both use the retention file in the directory of `prefix`.
  // Also takes over the readers' metrics. Returns their notes, which may be removed once store_retention() has
  // returned.
  // adopt_file() is the part of it that reads the retention file; false: there is none that can be used.
  bool adopt_file(const std::string& prefix, const std::string& latest_filename);
  std::vector<std::string> adopt_retention(const std::string& prefix, const std::string& latest_filename);
  std::vector<std::string> adopt_metrics(const std::string& directory);
  void store_retention(const std::string& prefix, const std::string& latest_filename);
  void replace_retention(const std::string& prefix, const std::string& latest_filename);
  KeptCheckpoints retention_in(const std::string& directory) const;
  bool would_delete(const std::string& prefix, double now, const RecordOptions& options);
  void remove_marked(const std::string& prefix, const RecordOptions& options);
  std::vector<std::string> removable_before(const std::string& prefix) const;
  bool drop(const std::string& key, const std::string& prefix, const RecordOptions& options);
  void write_state(const std::string& prefix, double now, const RecordOptions& options);
  void tell_of_deletions(const std::vector<std::string>& marked, const std::string& newest);
  bool remove_old(const std::string& key, const std::string& meta_graph_suffix);

  std::string key_of(const std::string& prefix) REQUIRES(mutex_);
  std::string spelled(const std::string& key) const REQUIRES(mutex_);
  std::vector<std::string> spelled(std::vector<std::string> keys) const REQUIRES(mutex_);

  FileSystem& files_;
  Clock& clock_;

  Mutex changing_files_;  // held while the files are read and replaced; taken before mutex_

  mutable Mutex mutex_;
  CheckpointList list_ GUARDED_BY(mutex_);                             // of canonical prefixes
  std::map<std::string, KeptCheckpoints> adopted_ GUARDED_BY(mutex_);  // retention files, as last seen
  std::map<std::string, std::string> spelling_ GUARDED_BY(mutex_);     // of directories, as used in prefixes
  std::set<std::string> relative_in_ GUARDED_BY(mutex_);               // directories: name_relatively_in()
  bool told_of_metrics_ GUARDED_BY(mutex_) = false;                    // that none are there, or that none count
};

}  // namespace longhaul
