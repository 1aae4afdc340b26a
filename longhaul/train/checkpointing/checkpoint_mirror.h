#pragma once

#include <memory>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/io/file.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/coordination/chief_lock.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

class Deadline;

struct MirrorOptions {
  std::string directory{};  // on another disk, or a mounted bucket; empty: there is no mirror
  // The retention there, independent of the logdir's.
  int max_to_keep = 5;                           // 0: all
  double keep_checkpoint_every_n_hours = 10000;  // of those dropped, one every so many hours stays; 0: none
  double max_bytes_per_second = 0;               // of a copy; 0: unlimited
  Seconds end_timeout{60};                       // how long the end of a run waits for the last copy
  Seconds start_timeout{60};                     // how long a start waits for the list of checkpoints
  // For mounted buckets (io/bucket_files.h). Without renames a copy is written under its final names, the index last.
  bool renames = true;
  bool syncs = true;
  // Whether the mirror is locked too (io/directory_lock.h), against a chief of another directory.
  LockOptions lock{};
  // When failed copies are retried, and their status: attempts->status(). nullptr: default_mirror_attempts(). Failures
  // never end training.
  std::shared_ptr<SaveAttempts> attempts{};
};

// InvalidArgumentError: the mirror of `directory` is that directory itself, by whatever name; a number is negative.
// Warns if there are options but no directory.
void check_mirror(const MirrorOptions& options, const std::string& directory);

// Retries after 5 s, then twice as long after each further failure, up to 5 minutes.
std::shared_ptr<SaveAttempts> default_mirror_attempts(Clock& clock);

// Copies the checkpoints of a training run to a second place, on its own thread, lh-mirror: always the one committed
// last, whatever its name. Those superseded while it copies are skipped; they do not queue up.
//
//   idle --add--> copying --committed there--> idle
//                         --failed--> waiting (back-off) --> copying the newest
//                         --gone or damaged--> idle
//
// A copy is committed by copy_checkpoint() (checkpoint/directory/checkpoint_copy.h), and read back before it counts;
// then the mirror's own state file is replaced, and the checkpoints that its own rule drops are deleted. After a kill
// in between, the next copy lists the one before it (mirror_list.h). A checkpoint that is deleted before the copy
// begins is skipped, and so is a damaged one.
//
// A failing mirror (full, missing, read-only, locked by another chief) is logged once until it works again, shows in
// status(), and is retried with back-off. One that hangs blocks only this thread. Training is never affected.
//
// Two chiefs never write to one mirror at the same time: it is locked during a copy, and before each rename and removal
// both the mirror's lock and the directory's are checked (check_directory_owner()). A chief that has lost its directory
// no longer mirrors. If the lock is switched off, no other chief may use the same mirror.
//
// Any thread may call; close() only one.
class CheckpointMirror {
 public:
  // For the checkpoints in `directory`. The file system and the clock outlive the thread, even one that is left behind.
  // InvalidArgumentError: the mirror is the directory itself.
  CheckpointMirror(const std::string& directory, MirrorOptions options, FileSystem& files = FileSystem::real(),
                   Clock& clock = Clock::real());
  ~CheckpointMirror();  // close()
  CheckpointMirror(const CheckpointMirror&) = delete;
  CheckpointMirror& operator=(const CheckpointMirror&) = delete;

  // Announces a new checkpoint, or one whose copy may be missing. Costs no file operation. A checkpoint of another
  // directory, such as the mirror itself, is ignored.
  void add(const std::string& prefix);

  // The status of copies, as SaveStatus has it for saves. last_prefix is that in the mirror.
  SaveStatus status() const;

  // Waits until the newest one is copied, retrying failures, for end_timeout or until the deadline, whichever is
  // sooner; then gives up and logs what is missing. A thread that hangs is left behind. Checkpoints added afterwards
  // are not copied.
  void close(const Deadline* deadline = nullptr);

 private:
  class Worker;

  const Coordinator coord_;  // the thread's own
  const std::shared_ptr<Worker> worker_;
  bool is_closed_ = false;
};

}  // namespace longhaul
