#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/checkpointing/save_once.h"
#include "longhaul/train/checkpointing/unsaved_steps.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/save_notices.h"
#include "longhaul/train/hooks/second_or_step_timer.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/tenure/checkpoint_cadence.h"

namespace longhaul {

class ChiefTenure;
class Preemption;
class Scaffold;

// Notified of the checkpoints that a CheckpointSaverHook takes, before and after each attempt. This includes an attempt
// at a step that is saved already (usually the one at the end), which writes only what has changed. All calls come from
// the thread that runs the session.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;

  virtual void begin() {}  // before the graph is finalized
  virtual void before_save(Session& /*session*/, int64_t /*global_step*/) {}
  // A checkpoint of this step exists. Return true to stop training after the run under way, or, between two runs, after
  // the next one.
  virtual bool after_save(Session& /*session*/, int64_t /*global_step*/) { return false; }
  // The checkpoint could not be written. The save will be retried, starting with before_save(), so undo here what
  // before_save() did, just as after_save() would.
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
  int64_t steps_per_run = 1;                     // by which one run increases the global step
  std::shared_ptr<FileWriter> summary_writer{};  // gets an event for each checkpoint; nullptr: checkpoint_dir's
  std::shared_ptr<SaveAttempts> saves{};  // how failed saves are handled, and their status; nullptr: the defaults
  std::shared_ptr<ChiefTenure> tenure{};  // its journal records all saves, its mirror copies them; nullptr: none
  // Whether save_secs is only the first interval, and best_save_interval() chooses the later ones. A save in a hook
  // stalls training for its whole duration.
  bool chooses_interval = false;
  // Its signals request checkpoints, and it may leave no time for the final one. nullptr: that of the MonitoredSession
  // which the hook is given to.
  Preemption* preemption = nullptr;
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Takes a checkpoint after a session is created (unless the session was restored from the checkpoint of that name),
// then at the given interval, and at the end. A checkpoint that is on the disk already, byte for byte, is not written
// again (save_once.h). The bytes are compared, not the steps, so the final checkpoint includes assignments made after
// the last one, even at the same step. If runs do not increase the step, the hook checks every save_secs, or every
// save_steps (at least 1000) runs, whether there is something to save.
//
// A save whose files cannot be written does not end training (save_once.h). It is retried after a run, at the time that
// SaveAttempts gives, and when the next checkpoint is due. The final save is retried until a timeout
// (final_checkpoint.h).
//
// If earlier runs ended before they could save (train/journal/first_interval.h), the first checkpoint after the start
// is taken sooner.
//
// A server of the session that announces its stop, and with it goes a part of the model, makes a checkpoint due at
// once.
//
// The hook decides whether a checkpoint is due from the step at which the run began, and again from the step after the
// run. With several workers, the saved step may be later than the one at which the checkpoint became due.
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

  // For a MonitoredSession, before begin(): the preemption of a hook whose options name none. nullptr: none.
  void preempted_by(Preemption* preemption);
  // The event file that it waits for before a checkpoint; nullptr before begin().
  const std::shared_ptr<FileWriter>& events() const { return writer_; }

  // The steps of this run that no checkpoint has; after an error, logs them as a warning. nullopt: none, or unknown.
  std::optional<UnsavedSteps> count_unsaved_steps(Session& session, bool after_error) const;

 private:
  Saver& saver(Graph& graph);
  bool may_be_due(const SessionRunValues& values) const;
  bool is_due(int64_t step) const;
  bool has_waited_for_steps() const;
  void save(Session& session, int64_t step);
  void save(Session& session, int64_t step, const std::function<bool()>& attempt);
  bool try_to_save(Session& session, int64_t step, const std::function<bool()>& attempt);
  SaveTarget target(Graph& graph);
  void tell_after(Session& session, int64_t step);

  const CheckpointSaverHookOptions options_;
  const std::string directory_, save_path_;
  const std::shared_ptr<SaveAttempts> saves_;
  Preemption* preemption_;            // nullptr: none
  std::optional<Coordinator> stops_;  // of the session
  SecondOrStepTimer timer_;
  std::unique_ptr<CheckpointCadence> cadence_;  // null until the run begins
  std::shared_ptr<FileWriter> writer_;
  std::shared_ptr<Saver> saver_;  // null until it is found
  HookStep step_;
  std::optional<int64_t> start_step_;  // of the run
  bool graph_is_written_ = false;
  bool stop_wanted_ = false;  // requested by a listener
  int64_t runs_at_step_ = 0;  // runs since the step last increased, as far as known
  SaveNotices notices_;
};

}  // namespace longhaul
