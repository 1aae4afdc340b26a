#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/checkpointing/save_once.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/second_or_step_timer.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/tenure/checkpoint_cadence.h"

namespace longhaul {

class ChiefTenure;
class Preemption;
class Scaffold;

// Notified of the checkpoints that a CheckpointSaverHook takes, before and after each attempt, including those of a
// step that is saved already (mostly the one at the end), which write only what has changed. All calls come from the
// thread that runs the session.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;

  virtual void begin() {}  // before the graph is finalized
  virtual void before_save(Session& /*session*/, int64_t /*global_step*/) {}
  // There is a checkpoint of this step. Return true to stop training after the run under way, or after the next one if
  // none is.
  virtual bool after_save(Session& /*session*/, int64_t /*global_step*/) { return false; }
  // The checkpoint could not be written; the save is retried, starting with before_save(). Undo now what before_save()
  // did, as after_save() would have.
  virtual void save_failed(Session& session, int64_t global_step) { after_save(session, global_step); }
  virtual void end(Session& /*session*/, int64_t /*global_step*/) {}  // training has ended well
};

struct CheckpointSaverHookOptions {
  std::string checkpoint_dir{};
  std::optional<Seconds> save_secs{};  // exactly one of the two
  std::optional<int64_t> save_steps{};
  std::shared_ptr<Saver> saver{};              // at most one of the two; neither: the one in the collection "savers"
  std::shared_ptr<const Scaffold> scaffold{};  // whose saver is used
  std::string checkpoint_basename = "model.ckpt";
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners{};
  int64_t steps_per_run = 1;                     // how far one run moves the global step
  std::shared_ptr<FileWriter> summary_writer{};  // gets an event for each checkpoint; nullptr: checkpoint_dir's
  std::shared_ptr<SaveAttempts> saves{};  // how failed saves are handled, and their status; nullptr: the defaults
  std::shared_ptr<ChiefTenure> tenure{};  // whose journal records all saves, and whose mirror gets them; nullptr: none
  // Whether save_secs is only the initial value, and later intervals are chosen: best_save_interval(). A save in a hook
  // stalls training for all the time that it takes.
  bool chooses_interval = false;
  Preemption* preemption = nullptr;  // its signals request checkpoints, and it may leave no time for the final one
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Takes a checkpoint after a session is created, unless it was restored from the one of that name; then at the given
// interval, and at the end. A checkpoint that is on the disk already, byte for byte, is not written again
// (save_once.h); so the one at the end includes assignments made after the last checkpoint even if the step is the
// same. If runs do not move the step, it checks every save_secs, or every save_steps (at least 1000) runs, whether
// there is something to save.
//
// A save whose files cannot be written does not end training (save_once.h): it is retried after a run, when
// SaveAttempts says so, and with the next one due. At the end it is retried until a timeout (final_checkpoint.h).
//
// After runs that were too short to save (train/journal/first_interval.h), the first checkpoint after the start is
// taken sooner.
//
// Whether one is due is decided from the step at which the run began, and again from the step after the run: with
// several workers, the saved step may be later than the one that made it due.
class CheckpointSaverHook : public SessionRunHook {
 public:
  // InvalidArgumentError: not exactly one of save_secs and save_steps; both a saver and a scaffold; no
  // checkpoint_dir.
  explicit CheckpointSaverHook(CheckpointSaverHookOptions options);

  // FailedPreconditionError: the graph has no global step. Errors of the file system: checkpoint_dir cannot be made.
  void begin(Graph& graph) override;

  // Writes the graph, as graph.pbtxt and as events, and takes a checkpoint. FailedPreconditionError: no saver was
  // given, and the graph has none or several.
  void after_create_session(Session& session, const Coordinator& coord) override;

  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;

 private:
  Saver& saver(Graph& graph);
  void write_graph(Graph& graph);
  bool is_asked_for() const;
  bool may_be_due(const SessionRunValues& values) const;
  bool is_due(int64_t step) const;
  bool has_waited_for_steps() const;
  void save(Session& session, int64_t step);
  void save(Session& session, int64_t step, const std::function<bool()>& attempt);
  bool try_to_save(Session& session, int64_t step, const std::function<bool()>& attempt);
  SaveTarget target(Graph& graph);
  void tell_failed(Session& session, int64_t step);
  void tell_after(Session& session, int64_t step);

  const CheckpointSaverHookOptions options_;
  const std::string directory_, save_path_;
  const std::shared_ptr<SaveAttempts> saves_;
  SecondOrStepTimer timer_;
  std::unique_ptr<CheckpointCadence> cadence_;  // of the run, once it has begun
  std::shared_ptr<FileWriter> writer_;
  std::shared_ptr<Saver> saver_;  // null until it is found
  HookStep step_;
  bool graph_is_written_ = false;
  bool stop_wanted_ = false;  // requested by a listener
  int64_t runs_at_step_ = 0;  // runs since the step last moved, as far as is known
};

}  // namespace longhaul
