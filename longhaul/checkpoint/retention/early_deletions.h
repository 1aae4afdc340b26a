#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/retention/disk_room.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"

namespace longhaul {

// Deletes old checkpoints before their turn where the disk is full, and not in vain: what gave no room for what was to
// be written is at most as much as one save takes, until a save comes through again. A disk that is short of something
// else than bytes (inodes, a quota that it does not tell of), or that another program fills, would cost all of them.
//
// Any thread; it waits for others.
class EarlyDeletions {
 public:
  // What the room is for.
  enum class For { kCheckpoint, kList };

  EarlyDeletions(FileSystem& files, ManagedCheckpoints& managed) : files_(files), managed_(managed) {}

  // disk_room.h's, before the first byte of a checkpoint.
  void make_room(const std::string& prefix, uint64_t data_bytes, const ManagedCheckpoints::RecordOptions& options);

  // After a write for `prefix` failed with `error`: deletes what has fallen out already, or else the oldest, if the
  // disk is full. False: nothing was deleted, and the write is not to be tried again.
  bool make_room_after(const Error& error, For need, const std::string& prefix, uint64_t data_bytes,
                       const ManagedCheckpoints::RecordOptions& options);

  void was_enough(For need);  // what was to be written, is

 private:
  bool is_in_vain(For need, uint64_t data_bytes) const;
  void count(For need, uint64_t bytes);

  FileSystem& files_;
  ManagedCheckpoints& managed_;
  mutable Mutex mutex_;
  uint64_t for_checkpoint_ GUARDED_BY(mutex_) = 0;  // bytes deleted since the last time it was enough
  uint64_t for_list_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
