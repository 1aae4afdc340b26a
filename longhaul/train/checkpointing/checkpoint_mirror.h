#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/io/file.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/coordination/chief_lock.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

struct MirrorOptions {
  std::string directory;  // on another disk, or a mounted bucket; empty: there is no mirror
  // What is kept there, whatever the directory of the training keeps.
  int max_to_keep = 5;                           // 0: all
  double keep_checkpoint_every_n_hours = 10000;  // of those that fall out, one in so many hours stays; 0: none
  double max_bytes_per_second = 0;               // of a copy; 0: all that it can
  Seconds end_timeout{60};    // for how long the end of a training waits for the last one to be there
  Seconds start_timeout{60};  // for how long a start waits to be told which checkpoints there are
  // For mounted buckets (io/bucket_files.h). Without renames a copy is written under its final names, the index last.
  bool renames = true;
  bool syncs = true;
  // Whether the mirror is locked too (io/directory_lock.h), against a chief whose own directory is another.
  LockOptions lock;
  // When copies that failed are tried again, and how it goes: attempts->status(). nullptr: those of
  // default_mirror_attempts(). Failures never end a training.
  std::shared_ptr<SaveAttempts> attempts;
};

// InvalidArgumentError: the mirror of `directory` is to be that directory itself.
void check_mirror(const MirrorOptions& options, const std::string& directory);

// After 5 s, after each further failure twice as long, after 5 minutes at most.
std::shared_ptr<SaveAttempts> default_mirror_attempts(Clock& clock);

// Copies the checkpoints of a training to a second place, on a thread of its own, lh-mirror: always the one that was
// committed last, whatever its name. Those that are overtaken while it copies are left out; they do not queue up.
//
//   idle --add--> copying --committed there--> idle
//                         --failed--> waiting (back-off) --> copying the newest
//                         --gone or damaged--> idle
//
// A copy is committed as copy_checkpoint() does it (checkpoint/directory/checkpoint_copy.h), read back before it
// counts; then the mirror's own state file is replaced, and what its own rule drops is deleted. A checkpoint that is
// deleted before the copy has begun is left out; one that is found to be damaged is not copied.
//
// A mirror that fails (full, gone, read-only, another's) is logged once until it works again, is in status(), and is
// tried again with back-off. One that hangs holds the thread alone. Nothing of it disturbs who trains.
//
// Two chiefs write to one mirror only one after the other: while it copies, the mirror is locked, and before each
// rename and removal both the mirror's lock and that of the directory are checked (check_directory_owner()). A chief
// that has lost its directory mirrors nothing any more. Where the lock is switched off, nobody else may have the same
// mirror.
//
// Any thread may call, close() but one.
class CheckpointMirror {
 public:
  // Of the checkpoints in `directory`. The file system and the clock outlive the thread, also one that is left behind.
  // InvalidArgumentError: the mirror is the directory itself.
  CheckpointMirror(const std::string& directory, MirrorOptions options, FileSystem& files = FileSystem::real(),
                   Clock& clock = Clock::real());
  ~CheckpointMirror();  // close()
  CheckpointMirror(const CheckpointMirror&) = delete;
  CheckpointMirror& operator=(const CheckpointMirror&) = delete;

  // There is a new checkpoint, or one that may not be there yet. Costs no file operation. One of another directory is
  // left out, as of the mirror itself.
  void add(const std::string& prefix);

  // How it goes: of copies, what SaveStatus says of saves. last_prefix is the one in the mirror.
  SaveStatus status() const;

  // Waits until the newest is there, trying again what fails, for end_timeout at most, or for `time_left` where
  // that is less; then gives up, and logs what is missing. A thread that hangs is left to itself. What is added after
  // it, is not copied.
  void close(std::optional<Seconds> time_left = std::nullopt);

 private:
  class Worker;

  const Coordinator coord_;  // the thread's own
  const Seconds timeout_;
  const std::shared_ptr<Worker> worker_;
  bool is_closed_ = false;
};

}  // namespace longhaul
