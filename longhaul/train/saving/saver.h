#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/checkpoint/retention/early_deletions.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"
#include "longhaul/checkpoint/retention/read_back.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/files/rate_limit.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/proto/saver.pb.h"
#include "longhaul/session/session.h"
#include "longhaul/train/saved_state/input_watch.h"
#include "longhaul/train/saved_state/nan_watch.h"
#include "longhaul/train/saved_state/save_entry.h"
#include "longhaul/train/saved_state/saver_graph.h"
#include "longhaul/train/saving/save_history.h"

namespace longhaul {

class SavedValues;
class Snapshots;

struct SaverOptions {
  Graph* graph = nullptr;                            // nullptr: the first entry's, or the default graph
  std::optional<std::vector<SaveEntry>> var_list{};  // absent: all global variables and saveable objects
  bool reshape = false;  // restores tensors of another shape with as many elements, in row-major order
  // A data file for each device that variables are on, sorted by its name. Where a device names a task of a cluster,
  // it is always so.
  bool sharded = false;
  int max_to_keep = 5;                           // 0: all
  double keep_checkpoint_every_n_hours = 10000;  // 0: never
  BestOptions best{};                            // also keeps the checkpoints with the best SaveOptions::metric
  std::string name = "save";                     // the scope of the added operations
  bool restore_sequentially = false;  // one by one: at most one restored tensor is in memory besides the variables
  // For a graph that already contains the saver's operations. The definition decides how many checkpoints are kept and
  // whether they are sharded; var_list, name, reshape and restore_sequentially must not be set.
  std::optional<proto::SaverDef> saver_def{};
  bool defer_build = false;  // build() adds the operations, not the constructor
  bool allow_empty = false;  // true: if there is nothing to save, save() returns "" and throws no error
  proto::SaverDef::CheckpointFormatVersion write_version = proto::SaverDef::V2;  // V1: UnimplementedError
  bool pad_step_number = false;                                                  // model.ckpt-00000005
  bool save_relative_paths = false;                     // in the state file, so that the directory can be moved
  std::string filename = "model";                       // of the graph's own save operation, unless fed
  Verification verify = Verification::kBeforeDeletion;  // which checkpoints are read back after their commit
  double max_bytes_per_second = 0;                      // limit for writing; a stop of training lifts it; 0: none
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// The step in a checkpoint's name: none, a number, or a tensor (an Output, a Variable, a name). A tensor is read in the
// same run as the variables.
class StepSource {
 public:
  StepSource() = default;
  template <std::integral T>
  StepSource(T step) : source_(static_cast<int64_t>(step)) {}
  template <std::convertible_to<Fetch> T>
  StepSource(const T& tensor) : source_(Fetch(tensor)) {}

  bool is_none() const { return source_.index() == 0; }
  const int64_t* number() const { return std::get_if<int64_t>(&source_); }
  const Fetch* tensor() const { return std::get_if<Fetch>(&source_); }

 private:
  std::variant<std::monostate, int64_t, Fetch> source_;
};

struct SaveOptions {
  std::string latest_filename = kDefaultStateFile;  // name of the state file
  std::string meta_graph_suffix = "meta";
  bool write_meta_graph = true;
  bool write_state = true;         // false: the state file and the list of checkpoints are left unchanged
  std::optional<double> metric{};  // this checkpoint's metric (SaverOptions::best); NaN: not known
  // Only if the step is read from a tensor: does not write the checkpoint if one of that name is on the disk with
  // exactly the same contents, byte for byte (checkpoint/bundle/same_contents.h), whoever wrote it. If this saver saved
  // or restored that checkpoint last, and it is listed as requested and has no new metric, the save ends there.
  // Otherwise the files next to it are written, as after any save.
  bool skip_if_saved = false;
  // Called with the step as soon as the variables are read. Any failure after this call is a failure of the file
  // system.
  std::function<void(std::optional<int64_t> step)> after_snapshot{};
  // Called after that, if a checkpoint is written.
  std::function<void(std::optional<int64_t> step)> before_write{};
  // Called at the end of the save, unless there was nothing to do.
  std::function<void(const SaveReport&)> after_save{};
  // How the save waits for SaverOptions::max_bytes_per_second. If it returns false, the rest of the checkpoint is
  // written without the limit; so is all of it, by tasks of a cluster too, if the limit is lifted before they begin. An
  // exception is a failure of the file system. Empty: it waits by the saver's clock.
  Pause pause_for_limit{};
  // Like SaverOptions::save_relative_paths, for this save: for callers that have made a relative path absolute.
  bool relative_paths = false;
};

// Saves the variables of a graph and its other stateful objects (ops/saveable.h) as checkpoints, keeps the last few of
// them, and restores them.
//
//   Saver saver({.graph = &graph});
//   saver.save(session, "runs/demo/model.ckpt", global_step);      // runs/demo/model.ckpt-1200.{index,data-...,meta}
//   saver.restore(session, "runs/demo/model.ckpt-1200");
//
// A save, step by step. A crash or an error at any point leaves the previous checkpoint or the new one, intact:
//   1. All variables and the step are read in one run, as they are between two training steps. Training continues.
//   2. A checkpoint that is on the disk already, with the same name and the same bytes, is not written again
//      (SaveOptions::skip_if_saved). If the step is the same but the bytes differ, the checkpoint is replaced.
//   3. The disk must have room for all of it (disk_room.h). If not, the oldest checkpoints are deleted early, as few as
//      necessary, but never a pinned one, one of the best, one to preserve, or the newest intact one. If that does not
//      make enough room, nothing is written: ResourceExhaustedError. If the disk still fills up during 4, 5 or 8, old
//      checkpoints are deleted in the same way and that step of the save is retried. At most one save's worth of old
//      checkpoints is deleted in vain (early_deletions.h).
//   4. The data, the meta graph and the index are written under temporary names and synced, all of them before the
//      first rename (BundleWriter). A committed checkpoint of the same name is then set aside; until 6, a restart finds
//      it there.
//   5. The data and the meta graph get their final names, and the directory is synced.
//   6. The index gets its final name. This commits the checkpoint: from here on it counts. The directory is synced
//      again.
//   7. The checkpoint is read back and its checksums are compared (SaverOptions::verify). If it is damaged, it is
//      renamed and the save fails: DataLossError. The state file still names the previous one.
//   8. The retention file, if there are pins or metrics, and the state file are replaced, each atomically.
//   9. Old checkpoints are deleted, the index of each first. A failed deletion is recorded, and retried after each
//      later save, even after a restart.
// After an error in 8, the next save of the same values with skip_if_saved resumes there.
//
// The saver keeps the newest `max_to_keep` checkpoints, the pinned ones, the `best.top_k` with the best metric, and one
// every n hours. While the saved values contain NaN that arose during training, it keeps the last checkpoint without
// NaN too (nan_watch.h). It looks at a sample of each tensor, so it can miss NaN in a few elements of a large one. Pins
// and metrics survive restarts (docs/formats/checkpoint_retention.md).
//
// In a session on several tasks, each task writes a data file of its own where all see the directory; where one does
// not, the values travel to this process while they are written, a few megabytes at a time (values_on_tasks.h). In 2,
// the checksums in the index stand for the bytes then. A restore does the same in the other direction
// (restore_on_tasks.h). Errors of a task begin with "From TASK:".
//
// If this process has locked the directory (io/lock/directory_lock.h; a Supervisor locks its logdir), a save checks
// before each rename and each deletion that the process still holds the lock: DirectoryLostError otherwise.
//
// Any thread may call; saves are serialised. The graph must outlive the saver.
class Saver {
 public:
  // InvalidArgumentError: "No variables to save"; var_list together with defer_build; two entries of the "same name";
  // an entry that would be restored "with two names". UnimplementedError: version V1.
  explicit Saver(SaverOptions options = {});

  // The saver with which a graph was exported (SaverOptions::saver_def).
  Saver(Graph& graph, const proto::SaverDef& saver_def, SaverOptions options = {});

  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  void build();  // call it once, with defer_build
  void ensure_built() {
    if (!built_) build();
  }

  // Returns the prefix, `save_path` or `save_path`-<step>. InvalidArgumentError: the directory cannot be made, or the
  // name collides with the state file's. FailedPreconditionError: not built. ResourceExhaustedError: the disk is full;
  // training may continue. DataLossError: the written files cannot be read back. Otherwise throws what the session and
  // the file system throw. After an error, the previous checkpoint of this name remains, if there was one. If only the
  // sync of the directory, the state file or the retention file failed, the new checkpoint remains instead; a restart
  // finds it without these.
  std::string save(Session& session, const std::string& save_path, const StepSource& global_step = {},
                   const SaveOptions& options = {});

  // NotFoundError: no such checkpoint ("not a valid checkpoint"), or names are missing in it. InvalidArgumentError:
  // shapes or dtypes differ. DataLossError: the checkpoint is damaged; another one may work. After any of these errors
  // except DataLossError, no variable has changed. A checkpoint of tf.train.Checkpoint ("object-based") is restored by
  // the names that its variables had in their graph.
  void restore(Session& session, const std::string& prefix);

  // The managed checkpoints, oldest first.
  std::vector<std::string> last_checkpoints() const { return managed_.prefixes(); }
  std::optional<std::string> last_checkpoint() const;  // the newest of them; nullopt: none
  void set_last_checkpoints(const std::vector<std::string>& prefixes) { managed_.reset(prefixes); }
  // Like set_last_checkpoints(), but leaves out checkpoints that do not exist. The second form also takes from the
  // state file the time at which each was saved and the time at which one was last kept for good
  // (SaverOptions::keep_checkpoint_every_n_hours).
  void recover_last_checkpoints(const std::vector<std::string>& prefixes);
  void recover_last_checkpoints(const CheckpointState& state) { managed_.recover(state); }
  // Keeps those of these checkpoints that are managed until a checkpoint of a later step is saved.
  void hold_checkpoints(const std::vector<std::string>& prefixes) { managed_.hold(prefixes); }
  // From now on, the newest checkpoint that is at least this many steps before the last one is kept, too, even if
  // max_to_keep is reached: one that the training can go back to if its last steps turn out bad
  // (train/divergence/way_back.h).
  void keep_behind(int64_t steps) { managed_.keep_behind(steps); }

  // A pinned checkpoint is not deleted, however old. After unpin(), the next save deletes it unless another rule keeps
  // it. NotFoundError: no such checkpoint. Both wait for a save under way.
  void pin(const std::string& prefix, const std::string& latest_filename = kDefaultStateFile);
  void unpin(const std::string& prefix, const std::string& latest_filename = kDefaultStateFile);
  std::vector<std::string> pinned_checkpoints() const { return managed_.pinned(); }
  std::vector<std::string> best_checkpoints() const { return managed_.best(); }  // best first

  // The prefix of the checkpoint saved or restored last. Empty after forget_last_saved(): call that when the variables
  // no longer have the values of that checkpoint.
  std::string last_saved() const { return saves_.last(); }
  // Whether that checkpoint was restored, and nothing was saved since.
  bool is_as_restored() const { return saves_.is_as_restored(); }
  void forget_last_saved() { saves_.forget(); }

  // From now on, saves to that directory use SaveOptions::relative_paths.
  void name_relatively_in(const std::string& directory) { managed_.name_relatively_in(directory); }

  // The report of the last save that wrote a checkpoint; nullopt: none so far.
  std::optional<SaveReport> last_report() const { return saves_.last_report(); }

  // Calls `callback`, as long as the caller keeps the returned object, whenever a save() has listed its checkpoint
  // (SaveOptions::write_state) or found it listed already. The callback runs on the thread of that save, while the save
  // is still under way. It must not throw, and must not call save(), which would deadlock.
  [[nodiscard]] std::shared_ptr<const SavedCallback> on_saved(SavedCallback callback) {
    return saves_.on_saved(std::move(callback));
  }

  // Waits until no save() is under way, at most for `timeout` and until the deadline, even if that is set during the
  // wait. Returns whether no save is under way.
  bool wait_until_idle(Seconds timeout, const Deadline* deadline = nullptr) const {
    return saves_.wait_until_idle(timeout, deadline);
  }

  proto::SaverDef to_proto() const;
  proto::SaverDef as_saver_def() const { return to_proto(); }

  // The graph with this saver; the second form also writes it to a file.
  proto::MetaGraphDef export_meta_graph() const;
  proto::MetaGraphDef export_meta_graph(const std::string& path) const;

  const std::vector<SaverNodes::SavedTensor>& saved_tensors() const { return nodes_.tensors; }
  // The size of everything that is saved, as far as the graph knows it (train/saved_state/saved_size.h). Strings and
  // tables are not counted.
  uint64_t bytes() const;
  double max_bytes_per_second() const { return options_.max_bytes_per_second; }  // 0: no limit
  Graph& graph() const { return *graph_; }
  FileSystem& files() const { return *options_.files; }

 private:
  void check_arguments(const std::string& path, const StepSource& step, const SaveOptions& options) const;
  void check_built() const;
  void announce(const std::string& prefix, std::optional<int64_t> step, SavedValues& values,
                const SaveOptions& options);
  std::optional<std::string> try_to_save(Session& session, const std::string& path, const StepSource& step,
                                         const SaveOptions& options) REQUIRES(saving_);
  void conclude(SaveReport report, Seconds start, const SaveOptions& options) REQUIRES(saving_);
  void list(const SaveReport& report, const SaveOptions& options);
  std::optional<uint64_t> write_or_make_room(const std::string& prefix, SavedValues& values,
                                             const SaveOptions& options);
  uint64_t write(const std::string& prefix, SavedValues& values, const SaveOptions& options);
  Environment environment() const;
  std::string serialized_meta_graph() const;
  void write_meta_graph(const std::string& prefix, const SaveOptions& options) const;
  ManagedCheckpoints::RecordOptions record_options(const std::string& prefix, const SaveOptions& options) const;

  const SaverOptions options_;
  Graph* graph_;
  SaverNodes nodes_;
  bool built_ = false;
  std::string graph_fingerprint_;  // at the time of build()

  SaveHistory saves_;
  Mutex saving_;                                              // held during a save, and by nothing else
  std::shared_ptr<Snapshots> snapshots_ GUARDED_BY(saving_);  // of the last saved session; keeps its buffers for reuse
  ManagedCheckpoints managed_;
  NanWatch nan_;
  InputWatch inputs_;
  EarlyDeletions early_deletions_;
};

}  // namespace longhaul
