#pragma once

#include <memory>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/coordination/chief_lock.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

class Deadline;

struct MirrorOptions {
  std::string directory{};  // on another disk, or a mounted bucket; empty: there is no mirror
  // The retention there, independent of the logdir's.
  int max_to_keep = 5;                           // 0: all
  double keep_checkpoint_every_n_hours = 10000;  // of the others, one is kept per this many hours; 0: none
  double max_bytes_per_second = 0;               // when writing a copy, and when reading it back; 0: unlimited
  Seconds end_timeout{60};                       // how long the end of a run waits for the last copy
  Seconds start_timeout{60};                     // how long a start waits for the list of checkpoints
  // For mounted buckets (io/files/bucket_files.h). Without renames a copy is written under its final names, the index
  // last.
  bool renames = true;
  bool syncs = true;
  // The mirror is locked too (io/lock/directory_lock.h), against the chief of another directory.
  LockOptions lock{};
  // When failed copies are retried, and their status: attempts->status(). nullptr: default_mirror_attempts(). Failures
  // never end training.
  std::shared_ptr<SaveAttempts> attempts{};
};

// InvalidArgumentError: the mirror is `directory` itself, by whatever name; a number is negative. Warns if options are
// set but no directory.
void check_mirror(const MirrorOptions& options, const std::string& directory);

// Retries after 5 s, then twice as long after each further failure, up to 5 minutes.
std::shared_ptr<SaveAttempts> default_mirror_attempts(Clock& clock);

// Copies the checkpoints of a training run to a second place, on its own thread, lh-mirror. It always copies the one
// committed last, whatever its name. Checkpoints that are superseded during a copy are skipped; they do not queue up.
//
//   idle --add--> copying --committed there--> idle
//                         --failed--> waiting (back-off) --> copying the newest
//                         --gone or damaged--> idle
//
// A copy is committed by copy_checkpoint() (checkpoint/directory/checkpoint_copy.h), and read back before it counts.
// Then the mirror's own state file is replaced, and the checkpoints that the mirror's retention drops are deleted. If
// the process is killed between these steps, the next copy also lists the previous one (mirror_list.h). A checkpoint
// that is deleted before the copy begins is skipped, and so is a damaged one.
//
// If a mirror fails (because it is full, missing, read-only or locked by another chief), this is logged once until it
// works again, shows in status(), and is retried with back-off. A mirror that hangs blocks only this thread. Training
// is never affected.
//
// Two chiefs never write to one mirror at the same time: the mirror is locked during a copy, and both its lock and the
// directory's are checked before each rename and removal (check_directory_owner()). A chief that has lost its directory
// no longer mirrors. If the lock is switched off, no other chief may use the same mirror.
//
// Any thread may call, but only one may call close().
class CheckpointMirror {
 public:
  // For the checkpoints in `directory`. The file system and the clock must outlive the thread, even one that close()
  // leaves behind. InvalidArgumentError: the mirror is the directory itself.
  CheckpointMirror(const std::string& directory, MirrorOptions options, FileSystem& files = FileSystem::real(),
                   Clock& clock = Clock::real());
  ~CheckpointMirror();  // close()
  CheckpointMirror(const CheckpointMirror&) = delete;
  CheckpointMirror& operator=(const CheckpointMirror&) = delete;

  // Announces a new checkpoint, or one whose copy may be missing. Costs no file operation. A checkpoint of another
  // directory, such as the mirror itself, is ignored.
  void add(const std::string& prefix);

  // The status of the copies; last_prefix is the prefix in the mirror.
  SaveStatus status() const;

  // Waits until the newest checkpoint is copied, and retries failures, for end_timeout or half of the time until the
  // deadline, whichever is less; the first retry comes at once, and one that would come too late is not waited for.
  // Then gives up and logs what is missing. A thread that hangs is left behind. A deadline that is set during one of
  // these waits shortens it. Checkpoints added afterwards are not copied.
  void close(const Deadline* deadline = nullptr);

 private:
  class Worker;

  const Coordinator coord_;  // the thread's own
  const std::shared_ptr<Worker> worker_;
  bool is_closed_ = false;
};

}  // namespace longhaul
