#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/events/file_writer.h"
#include "longhaul/status/status_options.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "longhaul/train/checkpointing/unsaved_steps.h"
#include "longhaul/train/coordination/chief_lock.h"
#include "longhaul/train/saving/recovery_options.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/signals/stop_budget.h"

namespace longhaul {

class RunJournal;
class RunStatus;
class StatusPage;
class Teardown;

// How a chief uses its directory, for Supervisor and MonitoredSession alike.
struct ChiefOptions {
  // The directory is locked during training, so that a second chief is refused (io/lock/directory_lock.h).
  LockOptions lock{};

  // Whether a chief that holds the lock keeps a journal of its runs in the directory (train/journal/run_journal.h).
  // kAuto, the account of lost time and skip_crashing_checkpoints need the journal.
  bool keep_journal = true;

  // Whether a restart skips a checkpoint, and restores an older one, if two runs that restored it died before they
  // saved another checkpoint (RunHistory::deaths_after()).
  bool skip_crashing_checkpoints = true;

  // Which checkpoints a restart may restore, and whether it initialises variables that they lack.
  RecoveryOptions recovery{};

  // A second directory for the checkpoints, with its own retention, which a restart searches too
  // (train/checkpointing/checkpoint_mirror.h). If `mirror.directory` is empty, nothing is mirrored.
  MirrorOptions mirror{};

  // A page about the run that this process serves, with metrics and probes (docs/guide/status_page.md), also where it
  // is not the chief; without an address, none.
  StatusOptions status{};

  // Stops training when a scheduler asks for it, with a final checkpoint if there is time for one, and takes
  // checkpoints on demand (train/signals/preemption.h); nullptr: none.
  Preemption* preemption = nullptr;
};

MirrorSearchOptions searched_mirror(const ChiefOptions& options);  // where a restart looks for the mirror's checkpoints

struct ChiefTenureOptions {
  std::string directory{};                  // empty: none
  std::string directory_option = "logdir";  // what errors call it
  std::string summary_directory{};          // of the event file, if it is not in `directory`; not locked
  ChiefOptions chief{};
  std::shared_ptr<SaveAttempts> saves{};  // while saves fail, no error is blamed on a checkpoint; nullptr: not watched
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// The functions that end the parts of a front end (Supervisor, MonitoredSession), in the order in which
// ChiefTenure::end() calls them. Empty: nothing to do.
struct TrainingEnd {
  std::function<void()> hooks;            // calls the hooks' end(); not after an error
  std::function<void()> threads;          // stops and joins the threads; called again if a preemption cut that short
  std::function<void()> last_checkpoint;  // takes the final checkpoint, if wanted; not after an error
  std::function<std::optional<UnsavedSteps>()> unsaved_steps;  // the steps that no checkpoint contains
  std::function<void()> events;                                // closes the event file
  std::function<void()> session;                               // closes the session
};

// The time during which this process is the chief of a directory. Owns what the chief holds for that time, and defines
// the order in which a training run ends.
//
//   over --begin--> held: recovered, mirror_saves_of, raise_if_lost --end--> over
//
// While it is held, the directory is locked, the journal is open, and saved checkpoints are mirrored. A front end that
// is not a chief, or has no directory, has a tenure too, but one without lock, journal and mirror: end() then ends only
// the front end's parts.
//
// One thread at a time may call. The journal may be used from any thread, and may outlive the tenure.
class ChiefTenure {
 public:
  // InvalidArgumentError: the mirror is the directory itself; the status page's options are wrong, or others could read
  // it without a token. Errors of the file with the token.
  explicit ChiefTenure(ChiefTenureOptions options);

  // If end() was not called, ends the tenure as that of an aborted run.
  ~ChiefTenure();
  ChiefTenure(const ChiefTenure&) = delete;
  ChiefTenure& operator=(const ChiefTenure&) = delete;

  // Reserves this object for one front end, until end(). A front end that may share it with another calls this before
  // begin(). DirectoryLockedError: another front end uses it. Any thread.
  void take();

  // Locks the directory and begins the journal. Neither is done if the directory is already held, or if the options
  // switch the lock off. The first call logs if SIGTERM would end this process without a checkpoint. `on_lost` is
  // called under the rules of ChiefLock. DirectoryLockedError: the directory has another chief. DirectoryAwayError: the
  // directory was locked for an earlier tenure and is missing now. Errors of the file system: the directory cannot be
  // written to.
  void begin(std::function<void(const std::exception_ptr&)> on_lost);

  // Whether the last begin() failed. If so, another chief has the directory, or may have it, and nothing may be written
  // there.
  bool is_refused() const { return is_refused_; }
  void raise_if_lost() const;  // DirectoryLostError: another chief has it. Costs no system call.

  // Returns the reason, from the journal, to skip this checkpoint in a restart, or nullopt if there is none. For
  // SessionManagerOptions::skip_reason.
  std::optional<SkipReason> skip_reason(const std::string& prefix);
  // SessionManagerOptions::is_skipped.
  bool is_skipped(const std::string& prefix) const;
  // SessionManagerOptions::drops_model.
  bool goes_back() const;
  // Records that a session is ready and that its model was restored from this checkpoint; empty: it was initialised, or
  // `was_there`. Logs what was lost by it: how many steps, as far as the journal knows how far training had come; the
  // time in which more were made, as long as it may have been.
  void recovered(const std::string& prefix, bool was_there = false);
  // Records in the journal that the run has failed, and why, and closes the journal.
  void failed(const std::exception_ptr& error);

  // Mirrors everything that this saver saves from now on. Also mirrors the checkpoint that it restored last, because
  // the previous run may have died while copying it. Does nothing without a mirror.
  void mirror_saves_of(Saver& saver);

  const std::shared_ptr<RunJournal>& journal() const { return journal_; }  // null: none, or the tenure is over
  // What the status page tells; null: there is no page.
  const std::shared_ptr<RunStatus>& status() const { return status_; }
  StopBudget budget() const { return options_.chief.preemption; }

  // Limits how much of a preemption's time goes to waits for an event file whose file system hangs, until end() has
  // taken the last checkpoint, which counts for more (FileWriter::WaitLimit). The first form is for the event file that
  // hooks share, the second for this one; both also limit the one in ChiefTenureOptions::summary_directory. Replaces
  // the limits of an earlier call. Does nothing for a file that does not exist, or without a preemption.
  void limit_waits_for_events();
  void limit_waits_for_events(std::shared_ptr<FileWriter> writer);

  // Ends the run and the tenure, in these steps. Each is done even if an earlier one throws. `end` keeps the first
  // error, which may have occurred before the call:
  //   1. the hooks' end() is called, unless there is an error
  //   2. the threads are stopped and joined
  //   3. the final checkpoint is taken, unless there is an error; under a preemption, the threads then get the
  //      remaining time
  //   4. the event file is closed, and the event file that hooks share is flushed; if their file system hangs, each
  //      gets half of what a preemption leaves, or FileWriterOptions::hang_secs
  //   5. the last checkpoint is copied to the mirror, within its timeout and half of what a preemption leaves
  //   6. the session is closed; it waits for its runs for half of what a preemption leaves
  //   7. the journal records the outcome, and is closed
  //   8. the directory is unlocked; until then, no other chief writes there. The status page ends
  // A second call ends only the front end's parts.
  void end(Teardown& end, const TrainingEnd& front_end = {});

  // Ends a session of a training that continues with the next one in this process, because its model goes back to an
  // earlier checkpoint: of the steps above 2, 4 and 6, for the front end's parts. The directory stays locked and the
  // journal open, so that a disk that is full ends nothing, until the next begin() and end().
  void end_session(Teardown& end, const TrainingEnd& front_end, const std::string& why);
  bool is_kept() const { return is_kept_; }  // between the two

 private:
  void lock_directory(std::function<void(const std::exception_ptr&)> on_lost);
  void begin_locked(std::function<void(const std::exception_ptr&)> on_lost);
  void begin_journal();
  void begin_page();
  void add_event_limit(std::shared_ptr<FileWriter> writer);
  void close_mirror();
  void close_journal(const std::exception_ptr& error, const std::optional<UnsavedSteps>& unsaved = std::nullopt);

  void note_unhandled_signals();
  bool locks() const { return options_.chief.lock.lock && !options_.directory.empty(); }

  struct EventLimit {
    std::shared_ptr<FileWriter> writer;
    std::unique_ptr<FileWriter::WaitLimit> limit;
  };

  const ChiefTenureOptions options_;
  std::atomic<bool> is_taken_{false};
  bool has_noted_signals_ = false;
  bool had_directory_ = false;  // the directory was locked before
  bool is_refused_ = false;
  bool is_kept_ = false;
  std::unique_ptr<ChiefLock> lock_;                 // null: over, or without
  std::shared_ptr<RunJournal> journal_;             // null: over, or without
  std::shared_ptr<CheckpointMirror> mirror_;        // null: over, or without
  std::shared_ptr<const SavedCallback> mirroring_;  // passes saved checkpoints to the mirror
  std::vector<EventLimit> event_limits_;            // one for each event file
  std::unique_ptr<StatusPage> page_;                // null, and so is the next one: none
  std::shared_ptr<RunStatus> status_;
};

}  // namespace longhaul
