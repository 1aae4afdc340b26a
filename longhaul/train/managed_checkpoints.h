#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/io/file.h"
#include "longhaul/train/checkpoint_list.h"

namespace longhaul {

// The checkpoints that a Saver manages, in memory and on the disk: the state file, the file of pins and metrics, the
// deletion of old ones. Any thread.
class ManagedCheckpoints {
 public:
  ManagedCheckpoints(const Retention& retention, FileSystem& files, Clock& clock)
      : files_(files), clock_(clock), list_(retention, clock.wall_time()) {}

  struct RecordOptions {
    std::string latest_filename = kDefaultStateFile;
    std::string meta_graph_suffix = "meta";
    bool relative_paths = false;
    std::optional<double> metric;
  };
  // `prefix` was committed: lists it, replaces the files beside it, and then deletes what fell out. A deletion that
  // fails is reported in the log and tried again by the next call.
  void record(const std::string& prefix, const RecordOptions& options);

  std::vector<std::string> prefixes() const;
  void reset(const std::vector<std::string>& prefixes);
  // Those of the state that exist, with the pins and metrics that stand beside the state file.
  void recover(const CheckpointState& state);

  // NotFoundError: there is no such checkpoint to pin.
  void pin(const std::string& prefix, const std::string& latest_filename);
  void unpin(const std::string& prefix, const std::string& latest_filename);
  std::vector<std::string> pinned() const;
  std::vector<std::string> best() const;

 private:
  std::vector<double> commit_times(const std::vector<std::string>& prefixes) const;
  void adopt_retention(const std::string& directory, const std::string& latest_filename);
  void store_retention(const std::string& directory, const std::string& latest_filename);
  void remove_old(const std::string& prefix, const std::string& meta_graph_suffix);

  FileSystem& files_;
  Clock& clock_;

  Mutex changing_files_;  // held while the files are read and replaced; taken before mutex_

  mutable Mutex mutex_;
  CheckpointList list_ GUARDED_BY(mutex_);
  std::set<std::string> adopted_ GUARDED_BY(mutex_);  // the retention files whose contents are in the list
};

}  // namespace longhaul
