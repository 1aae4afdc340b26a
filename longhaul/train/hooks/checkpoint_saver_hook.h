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

// Is told of the checkpoints that a CheckpointSaverHook takes, before and after each attempt: also of those of a step
// that is saved already, at the end above all, which write only what has changed. All calls come from the thread that
// runs the session.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;

  virtual void begin() {}  // before the graph is finalized
  virtual void before_save(Session& /*session*/, int64_t /*global_step*/) {}
  // There is a checkpoint of this step. True: the training is to stop, after the run that is under way, or after the
  // next one if none is.
  virtual bool after_save(Session& /*session*/, int64_t /*global_step*/) { return false; }
  // The checkpoint could not be written; it is tried again, from before_save() on. What that did must be undone now, as
  // after_save() would have.
  virtual void save_failed(Session& session, int64_t global_step) { after_save(session, global_step); }
  virtual void end(Session& /*session*/, int64_t /*global_step*/) {}  // the training has ended well
};

struct CheckpointSaverHookOptions {
  std::string checkpoint_dir;
  std::optional<Seconds> save_secs;  // exactly one of the two
  std::optional<int64_t> save_steps;
  std::shared_ptr<Saver> saver;  // at most one of the two; neither: the one of the graph's collection "savers"
  std::shared_ptr<const Scaffold> scaffold;  // whose saver is used
  std::string checkpoint_basename = "model.ckpt";
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners;
  int64_t steps_per_run = 1;                   // how far one run moves the global step
  std::shared_ptr<FileWriter> summary_writer;  // which learns of the checkpoints; nullptr: the one of checkpoint_dir
  std::shared_ptr<SaveAttempts> saves;  // how saves that fail are dealt with, and their status; nullptr: the defaults
  std::shared_ptr<ChiefTenure> tenure;  // whose journal is told of all saves, and whose mirror gets them; nullptr: none
  // Whether save_secs is only what it begins with, and each interval is chosen then: best_save_interval(). A save here
  // costs the training all the time that it takes.
  bool chooses_interval = false;
  Preemption* preemption =
      nullptr;  // takes checkpoints as its signals ask, and may have no time for the one at the end
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Takes a checkpoint when a session was created, unless it was restored from the one of that name; then every so often,
// and at the end. What is on the disk already, byte for byte, is not written again (save_once.h): the end saves what
// was assigned after the last checkpoint, though the step be the same. Where the step stands still though runs are
// made, it looks every save_secs, or every save_steps (1000 at least) runs, whether there is something to save.
//
// A save whose files cannot be written does not end the training (save_once.h): it is tried again after a run, when
// SaveAttempts says so, and by the next one that is due. At the end it is insisted on (final_checkpoint.h).
//
// After runs that were too short to save (train/journal/first_interval.h) the first one after the start is taken
// sooner.
//
// Whether one is due is decided from the step that the run began with, and once more from the step that there is after
// the run: where several workers train, the saved step may be beyond the one that made it due.
class CheckpointSaverHook : public SessionRunHook {
 public:
  // InvalidArgumentError: not exactly one of save_secs and save_steps; both a saver and a scaffold; no
  // checkpoint_dir.
  explicit CheckpointSaverHook(CheckpointSaverHookOptions options);

  // FailedPreconditionError: the graph has no global step. What the file system throws: checkpoint_dir cannot be made.
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
  SaveTarget target(Graph& graph);
  void tell_failed(Session& session, int64_t step);
  void tell_after(Session& session, int64_t step);

  const CheckpointSaverHookOptions options_;
  const std::string directory_, save_path_;
  const std::shared_ptr<SaveAttempts> saves_;
  SecondOrStepTimer timer_;
  std::unique_ptr<CheckpointCadence> cadence_;  // of the run, once it has begun
  std::shared_ptr<FileWriter> writer_;
  std::shared_ptr<Saver> saver_;  // once it is found
  HookStep step_;
  bool graph_is_written_ = false;
  bool stop_wanted_ = false;  // by a listener
  int64_t runs_at_step_ = 0;  // since the step moved, as far as is known
};

}  // namespace longhaul
