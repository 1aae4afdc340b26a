#pragma once

#include <functional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/io/file.h"

namespace longhaul {

struct CheckpointCopyOptions {
  FileSystem* from_files = &FileSystem::real();
  FileSystem* to_files = &FileSystem::real();
  std::string meta_suffix = "meta";
  double max_bytes_per_second = 0;  // 0: all that it can
  // Whether the files are written under their final names, the index last, for places where a rename copies.
  bool in_place = false;
  std::function<void(uint64_t bytes)> before_first_byte;  // with the size of all files, once they are known
  std::function<void()> before_piece;   // called before each piece of some megabytes; what it throws ends the copy
  std::function<void()> before_change;  // the same, before what is there is renamed or removed
  Clock* clock = &Clock::real();
};

// Copies a committed checkpoint from prefix `from` to prefix `to`, in another directory, which exists. A crash between
// any two steps, and an error, leave what was at `to` or the copy, whole, or neither (from 4 to 6):
//   1. All files of `from` are opened, the index is read: from then on it may be deleted. NotFoundError: it is not
//      there any more. If `to` has the same index and all data files, nothing is done.
//   2. Data files, meta graph and index are written to the folder kIncoming beside `to`, and synced. As long as there
//   is
//      an index there, files of its name in the directory may be uncommitted (crash_leftovers.h).
//   3. There all of it is read back, and its checksums are compared: DataLossError. So damage is not copied, wherever
//      it comes from, and a checkpoint that is replaced while it is read is noticed.
//   4. Another checkpoint that has the name `to` is removed. The directory is synced.
//   5. Data files and meta graph are renamed, and the directory is synced.
//   6. The index is renamed, and the directory is synced.
// In place, kIncoming gets the index alone. Then 4 comes first, 2 writes to `to`, and 5 and 6 are left out: the index,
// the commit record, is written last, and a copy that turns out to be damaged is removed. A crash may leave an index
// that is cut; a restore passes it over.
//
// Returns whether anything was copied. What is left over of a copy that failed is removed, if that can be done.
bool copy_checkpoint(const std::string& from, const std::string& to, const CheckpointCopyOptions& options);

inline constexpr const char* kIncoming = ".incoming";

// Removes what killed processes have left in the folder kIncoming of `directory`. No copy is under way there.
void clear_incoming(FileSystem& files, const std::string& directory);

}  // namespace longhaul
