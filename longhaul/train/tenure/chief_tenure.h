#pragma once

#include <atomic>
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

// How a chief treats its directory, with either front end.
struct ChiefOptions {
  // The directory is locked during training, so that a second chief is refused (io/directory_lock.h).
  LockOptions lock;

  // Whether the chief that holds the lock keeps a journal of its runs there (train/journal/run_journal.h): for kAuto,
  // for the account of lost time, and for the next option. With that one, a checkpoint after whose restore two runs
  // died before they had saved another is skipped in favour of the one before it (RunHistory::deaths_after()).
  bool keep_journal = true;
  bool skip_crashing_checkpoints = true;

  // Whether checkpoints that no state file names count. false, as in TensorFlow: only checkpoints listed in the state
  // file, or in the mirror's own, are restored. Removing that file then starts training from the beginning, ignoring
  // the mirror, and new checkpoints replace old ones of the same names. A state file that cannot be used (empty,
  // damaged, a dangling link) is a DataLossError, and so is one whose checkpoints are all damaged.
  bool search_directory = true;
  // For a saver that omits global variables: after a restore, the initializers of those that ready_op names as not
  // initialised are run.
  bool initialize_missing = false;

  // A second place for the checkpoints, with its own retention, which a restart searches too
  // (train/checkpointing/checkpoint_mirror.h); none without a directory.
  MirrorOptions mirror;

  // Ends training when a scheduler says so, with a final checkpoint if there is time for one, and requests checkpoints
  // on demand (train/signals/preemption.h); nullptr: none.
  Preemption* preemption = nullptr;
};

struct ChiefTenureOptions {
  std::string directory;  // empty: none
  ChiefOptions chief;
  std::shared_ptr<SaveAttempts> saves;  // while these fail, an error is not blamed on the checkpoint; nullptr: never
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// The parts that a front end (Supervisor, MonitoredSession) ends in addition to its tenure, in the order in which
// ChiefTenure::end() calls them. Empty: nothing to do.
struct TrainingEnd {
  std::function<void()> hooks;            // calls their end(); not after an error
  std::function<void()> threads;          // stops and joins them; called again if a preemption cut that short
  std::function<void()> last_checkpoint;  // takes it, if wanted; not after an error
  std::function<std::optional<UnsavedSteps>()> unsaved_steps;  // steps that no checkpoint has
  std::function<void()> events;                                // closes the event file
  std::function<void()> session;                               // closes it
};

// The time during which this process is the chief of a directory. Owns what the chief holds for that time, and defines
// the order in which a training run ends.
//
//   over --begin--> held: recovered, mirror_saves_of, raise_if_lost --end--> over
//
// While it is held, the directory is locked, the journal is open, and saved checkpoints are mirrored. A front end that
// is not a chief or has no directory has a tenure too: without lock, journal and mirror, end() ends only the front
// end's parts.
//
// One thread at a time; its journal may be used from any thread, and may outlive it.
class ChiefTenure {
 public:
  // InvalidArgumentError: the mirror is the directory itself.
  explicit ChiefTenure(ChiefTenureOptions options);

  // Ends it, if that was not done, as an aborted run.
  ~ChiefTenure();
  ChiefTenure(const ChiefTenure&) = delete;
  ChiefTenure& operator=(const ChiefTenure&) = delete;

  // For a front end that may share this object with another, before begin(): only one may use it at a time, until
  // end(). DirectoryLockedError: another uses it. Any thread.
  void take();

  // Locks the directory and begins the journal. Does nothing if it is held already, or is not to be locked. `on_lost`
  // is called as by ChiefLock. DirectoryLockedError: the directory has another chief. DirectoryAwayError: it was locked
  // for an earlier tenure and is missing now.
  void begin(std::function<void(const std::exception_ptr&)> on_lost);

  // The last begin() failed: another chief has, or may have, the directory. Nothing may be written there.
  bool is_refused() const { return is_refused_; }
  void raise_if_lost() const;  // DirectoryLostError: another chief has it. Costs no system call.

  // Why a checkpoint is to be skipped, according to the journal; nullopt: it is not. For
  // SessionManagerOptions::skip_reason.
  std::optional<std::string> skip_reason(const std::string& prefix);
  // A session is ready, with the model restored from this checkpoint; empty: it was initialised.
  void recovered(const std::string& prefix);
  // The run has failed, whatever follows: records the reason in the journal, and closes it.
  void failed(const std::exception_ptr& error);

  // Mirrors everything that this saver saves from now on, and the checkpoint that it restored last, since the previous
  // run may have died while copying it. Does nothing without a mirror.
  void mirror_saves_of(Saver& saver);

  const std::shared_ptr<RunJournal>& journal() const { return journal_; }  // null: none, or the tenure is over
  StopBudget budget() const { return options_.chief.preemption; }

  // Ends the run, and with it the tenure. Each step is done even if earlier ones threw, and `end` keeps the first
  // error, which may date from before the call:
  //   1. the hooks' end() is called, unless there is an error
  //   2. the threads are stopped and joined
  //   3. the final checkpoint is taken, unless there is an error; under a preemption, the threads then get the time
  //      left
  //   4. the event file is closed, and the one that hooks share is flushed
  //   5. the mirror gets the last checkpoint, within its timeout and the time that a preemption leaves
  //   6. the session is closed
  //   7. the journal records the outcome, and is closed
  //   8. the directory is unlocked: until then no other chief writes there
  // A second call ends only the front end's parts.
  void end(Teardown& end, const TrainingEnd& front_end = {});

 private:
  void close_mirror();
  void close_journal(const std::exception_ptr& error, const std::optional<UnsavedSteps>& unsaved = std::nullopt);

  bool locks() const { return options_.chief.lock.lock && !options_.directory.empty(); }

  const ChiefTenureOptions options_;
  std::atomic<bool> is_taken_{false};
  bool had_directory_ = false;  // it was locked before
  bool is_refused_ = false;
  std::unique_ptr<ChiefLock> lock_;                 // null: over, or without
  std::shared_ptr<RunJournal> journal_;             // null: over, or without
  std::shared_ptr<CheckpointMirror> mirror_;        // null: over, or without
  std::shared_ptr<const SavedCallback> mirroring_;  // passes saved checkpoints to the mirror
};

}  // namespace longhaul
