#include "longhaul/checkpoint/retention/early_deletions.h"

#include <algorithm>

#include "longhaul/base/log.h"

namespace longhaul {

void EarlyDeletions::make_room(const std::string& prefix, uint64_t data_bytes,
                               const ManagedCheckpoints::RecordOptions& options) {
  const auto remove_oldest = [&](uint64_t missing, const auto& fits) {
    if (is_in_vain(For::kCheckpoint, data_bytes)) return;
    if (const auto removed = managed_.remove_oldest(prefix, options, missing, fits)) count(For::kCheckpoint, *removed);
  };
  longhaul::make_room(files_, prefix, data_bytes,
                      {[&] { managed_.remove_what_fell_out(prefix, options); }, remove_oldest});
}

bool EarlyDeletions::make_room_after(const Error& error, For need, const std::string& prefix, uint64_t data_bytes,
                                     const ManagedCheckpoints::RecordOptions& options) {
  if (!is_disk_full(error)) return false;
  if (managed_.remove_what_fell_out(prefix, options)) return true;
  if (is_in_vain(need, data_bytes)) {
    log_warning(
        "{}: the disk is still full although older checkpoints were deleted to make room, so no more are deleted. Free "
        "bytes or inodes (df, df -i)",
        prefix);
    return false;
  }
  const auto removed = managed_.remove_oldest(prefix, options, 0, [] { return true; });
  if (removed) count(need, *removed);
  return removed.has_value();
}

void EarlyDeletions::was_enough(For need) {
  MutexLock lock(mutex_);
  (need == For::kList ? for_list_ : for_checkpoint_) = 0;
}

bool EarlyDeletions::is_in_vain(For need, uint64_t data_bytes) const {
  MutexLock lock(mutex_);
  return (need == For::kList ? for_list_ : for_checkpoint_) >= std::max<uint64_t>(data_bytes, 1);
}

// One without any data counts, too.
void EarlyDeletions::count(For need, uint64_t bytes) {
  MutexLock lock(mutex_);
  (need == For::kList ? for_list_ : for_checkpoint_) += std::max<uint64_t>(bytes, 1);
}

}  // namespace longhaul
