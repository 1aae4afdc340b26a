#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "longhaul/train/checkpointing/unsaved_steps.h"
#include "longhaul/train/coordination/chief_lock.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/signals/stop_budget.h"

namespace longhaul {

class RunJournal;
class Teardown;

// What a chief does with its directory, whichever the front end.
struct ChiefOptions {
  // Locked while it trains, so that a second chief is refused (io/directory_lock.h).
  LockOptions lock;

  // Whether the chief that has the directory locked keeps a journal of its runs there (train/journal/run_journal.h):
  // for kAuto, for the account of lost time, and for what follows. A checkpoint that two runs died of, as it seems,
  // before they had saved another is skipped in favour of the one before it, unless that is not wanted
  // (RunHistory::deaths_after()).
  bool keep_journal = true;
  bool skip_crashing_checkpoints = true;

  // Whether checkpoints count that no state file names. false, as in TensorFlow: only what the state file lists is
  // restored, and of the mirror what its own state file lists as well. To remove that file is to begin anew, with the
  // mirror left alone, and old checkpoints are replaced by new ones of their names. One that is there and cannot be
  // used (empty, damaged, a link to nothing) is a DataLossError; so it is where all that it lists are damaged.
  bool search_directory = true;
  // For a saver that leaves out global variables: when the model is recovered, the initializers of those that are not
  // initialised then are run, as ready_op names them.
  bool initialize_missing = false;

  // A second place for the checkpoints, with a rule of its own, that is searched as well when a training recovers
  // (train/checkpointing/checkpoint_mirror.h); without a directory there is none.
  MirrorOptions mirror;

  // Ends the training as schedulers do, with a last checkpoint if they leave the time for one, and takes one when asked
  // to (train/signals/preemption.h); nullptr: without.
  Preemption* preemption = nullptr;
};

struct ChiefTenureOptions {
  std::string directory;  // empty: there is none to be the chief of
  ChiefOptions chief;
  std::shared_ptr<SaveAttempts> saves;  // an error while these fail is not the checkpoint's; nullptr: they never do
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// What a front end (Supervisor, MonitoredSession) has to end besides its tenure, in the order in which
// ChiefTenure::end() calls it. Empty: nothing.
struct TrainingEnd {
  std::function<void()> hooks;            // have their last word; not after an error
  std::function<void()> threads;          // are stopped and waited for; called twice where a preemption cut that short
  std::function<void()> last_checkpoint;  // is taken, if one is wanted; not after an error
  std::function<std::optional<UnsavedSteps>()> unsaved_steps;  // that no checkpoint has
  std::function<void()> events;                                // are closed
  std::function<void()> session;                               // is closed
};

// The time for which this process is the chief of a directory: what it has for as long as that lasts, and the one
// place that tells in which order a training run ends.
//
//   over --begin--> held: recovered, mirror_saves_of, raise_if_lost --end--> over
//
// Held, the directory is locked, the journal is open, and what a saver saves is mirrored. A front end has a tenure
// also where it is no chief or has no directory: then there is nothing of the three, and end() ends the rest.
//
// One thread at a time; the journal that it hands out is for any, and may outlive it.
class ChiefTenure {
 public:
  // InvalidArgumentError: the mirror is the directory itself.
  explicit ChiefTenure(ChiefTenureOptions options);

  // Ends it, if nobody has, as a run that was aborted.
  ~ChiefTenure();
  ChiefTenure(const ChiefTenure&) = delete;
  ChiefTenure& operator=(const ChiefTenure&) = delete;

  // Locks the directory, and begins the journal. Nothing where it is held already, or not to be locked. `on_lost` is
  // called as ChiefLock does. DirectoryLockedError: the directory has a chief. DirectoryAwayError: it was locked for an
  // earlier tenure, and is not there now.
  void begin(std::function<void(const std::exception_ptr&)> on_lost);

  // Another has, or may have, the directory: begin() has failed since the last time that it did not. Nothing is to be
  // written there.
  bool is_refused() const { return is_refused_; }
  void raise_if_lost() const;  // DirectoryLostError: it is another's by now. Costs no system call.

  // Why a checkpoint is to be skipped, by the journal; nullopt: it is not. SessionManagerOptions::skip_reason.
  std::optional<std::string> skip_reason(const std::string& prefix);
  // A session is ready, whose model was restored from here; empty: it was initialised.
  void recovered(const std::string& prefix);
  // Whatever follows, the run has failed: the journal is told why, and closed.
  void failed(const std::exception_ptr& error);

  // Mirrors what this saver saves from now on, and the checkpoint that it has restored last, whose copy may have been
  // under way when the run before this one died. Without a mirror: nothing.
  void mirror_saves_of(Saver& saver);

  const std::shared_ptr<RunJournal>& journal() const { return journal_; }  // null: there is none, or it is over
  StopBudget budget() const { return options_.chief.preemption; }

  // Ends the run, and with it the tenure. Each step is done, whatever the ones before it threw, and `end` keeps the
  // first error, which may have been there before:
  //   1. the hooks have their last word, unless there is an error
  //   2. the threads are stopped and waited for
  //   3. the last checkpoint is taken, unless there is an error; then a preemption leaves the threads what is left
  //   4. the events are closed
  //   5. the mirror gets the last checkpoint, within its timeout, and what a preemption leaves
  //   6. the session is closed
  //   7. the journal notes how the run went, and is closed
  //   8. the directory is given back: until then nobody else writes there
  // A second time it has nothing of its own to do.
  void end(Teardown& end, const TrainingEnd& front_end = {});

 private:
  void close_mirror();
  void close_journal(const std::exception_ptr& error, const std::optional<UnsavedSteps>& unsaved = std::nullopt);

  const ChiefTenureOptions options_;
  bool had_directory_ = false;  // locked it before
  bool is_refused_ = false;
  std::unique_ptr<ChiefLock> lock_;                 // null: over, or without
  std::shared_ptr<RunJournal> journal_;             // null: over, or without
  std::shared_ptr<CheckpointMirror> mirror_;        // null: over, or without
  std::shared_ptr<const SavedCallback> mirroring_;  // has the mirror learn of what is saved
};

}  // namespace longhaul
