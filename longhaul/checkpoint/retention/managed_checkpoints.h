#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/retention/checkpoint_list.h"
#include "longhaul/io/file.h"

namespace longhaul {

// The checkpoints that a Saver manages, in memory and on the disk: the state file, the file of pins and metrics, the
// deletion of old ones. However a prefix is spelled (relative, absolute, with a "./"), it is the same checkpoint; given
// back it has the spelling in which its directory was named last. Any thread.
class ManagedCheckpoints {
 public:
  ManagedCheckpoints(const Retention& retention, FileSystem& files, Clock& clock)
      : files_(files), clock_(clock), list_(retention, clock.wall_time()) {}

  struct RecordOptions {
    std::string latest_filename = kDefaultStateFile;
    std::string meta_graph_suffix = "meta";
    bool relative_paths = false;
    std::optional<double> metric;
    std::string held;  // stays listed although this one is of a later step: CheckpointList::add(); empty: none
    std::function<void()> before_deletion;  // called if something is to be deleted; what it throws, record() throws
  };
  // `prefix` was committed: lists it, replaces the files beside it, and then deletes what fell out. A deletion that
  // fails is reported in the log, written down, and tried again by the next call, also after a restart. Pins and
  // metrics that other savers and processes have written meanwhile are taken over.
  void record(const std::string& prefix, const RecordOptions& options);

  // For want of room: tries the deletions that failed, here and in earlier processes, once more, unless the newest
  // checkpoint that is listed does not exist. `prefix` is the checkpoint that is to be written. Whether one was made.
  bool remove_what_fell_out(const std::string& prefix, const RecordOptions& options);

  // For want of room, too: deletes listed checkpoints before their turn, the oldest first, one after another until
  // `fits()`. Only those that newer ones would push out to be deleted (CheckpointList::droppable()), that lie beside
  // `prefix`, and that are older than the newest one that is whole: it is read for that. None, if all of them together
  // have less than `missing` bytes. How many bytes of data were deleted; nullopt: no checkpoint was.
  std::optional<uint64_t> remove_oldest(const std::string& prefix, const RecordOptions& options, uint64_t missing,
                                        const std::function<bool()>& fits);

  // From now on the state file of that directory names what lies in it by relative paths, whatever RecordOptions say.
  void name_relatively_in(const std::string& directory);

  std::vector<std::string> prefixes() const;
  void reset(const std::vector<std::string>& prefixes);
  // Those of the state that exist, with the pins and metrics that stand beside the state file.
  void recover(const CheckpointState& state);

  // Those of them that are listed are not deleted until a checkpoint of a later step than their own is recorded.
  void hold(const std::vector<std::string>& prefixes);

  // NotFoundError: there is no such checkpoint to pin.
  void pin(const std::string& prefix, const std::string& latest_filename);
  void unpin(const std::string& prefix, const std::string& latest_filename);
  std::vector<std::string> pinned() const;
  std::vector<std::string> best() const;

 private:
  std::vector<double> commit_times(const std::vector<std::string>& prefixes) const;
  // The retention file is that of the directory that `prefix` lies in.
  void adopt_retention(const std::string& prefix, const std::string& latest_filename);
  void store_retention(const std::string& prefix, const std::string& latest_filename);
  void replace_retention(const std::string& prefix, const std::string& latest_filename);
  KeptCheckpoints retention_in(const std::string& directory) const;
  bool would_delete(const std::string& prefix, double now, const RecordOptions& options);
  static void add(CheckpointList& list, const std::string& key, double now, const RecordOptions& options);
  void remove_marked(const std::string& prefix, const RecordOptions& options);
  std::vector<std::string> removable_before(const std::string& prefix) const;
  void drop(const std::string& key, const std::string& prefix, const RecordOptions& options);
  void write_state(const std::string& prefix, double now, const RecordOptions& options);
  bool remove_old(const std::string& key, const std::string& meta_graph_suffix);

  std::string key_of(const std::string& prefix) REQUIRES(mutex_);
  std::string spelled(const std::string& key) const REQUIRES(mutex_);
  std::vector<std::string> spelled(std::vector<std::string> keys) const REQUIRES(mutex_);

  FileSystem& files_;
  Clock& clock_;

  Mutex changing_files_;  // held while the files are read and replaced; taken before mutex_

  mutable Mutex mutex_;
  CheckpointList list_ GUARDED_BY(mutex_);                             // of canonical prefixes
  std::map<std::string, KeptCheckpoints> adopted_ GUARDED_BY(mutex_);  // retention files, as they were seen last
  std::map<std::string, std::string> spelling_ GUARDED_BY(mutex_);     // of directories, as they stand in prefixes
  std::set<std::string> relative_in_ GUARDED_BY(mutex_);               // directories: name_relatively_in()
};

}  // namespace longhaul
