#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/retention/disk_room.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"

namespace longhaul {

// Deletes old checkpoints before their turn when the disk is full. If deleting does not help, it stops after as many
// bytes as one save takes, until a save succeeds again. Without this limit, a disk that is short of something other
// than bytes (inodes, a quota that it does not report), or that another program fills, would cost all checkpoints.
//
// Any thread may call. Calls may wait for other threads.
class EarlyDeletions {
 public:
  // The purpose of the room.
  enum class For { kCheckpoint, kList };

  EarlyDeletions(FileSystem& files, ManagedCheckpoints& managed) : files_(files), managed_(managed) {}

  // Makes room as in disk_room.h. Call it before the first byte of a checkpoint.
  void make_room(const std::string& prefix, uint64_t data_bytes, const ManagedCheckpoints::RecordOptions& options);

  // Call it after a write for `prefix` failed with `error`. If the disk is full, deletes checkpoints that retention has
  // already dropped, or else the oldest. Returns false if nothing was deleted: do not retry the write.
  bool make_room_after(const Error& error, For need, const std::string& prefix, uint64_t data_bytes,
                       const ManagedCheckpoints::RecordOptions& options);

  void was_enough(For need);  // the write succeeded

 private:
  bool is_in_vain(For need, uint64_t data_bytes) const;
  void count(For need, uint64_t bytes);

  FileSystem& files_;
  ManagedCheckpoints& managed_;
  mutable Mutex mutex_;
  uint64_t for_checkpoint_ GUARDED_BY(mutex_) = 0;  // bytes deleted since the last was_enough()
  uint64_t for_list_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
