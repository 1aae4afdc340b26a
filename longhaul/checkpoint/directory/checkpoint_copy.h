#pragma once

#include <functional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/files/rate_limit.h"

namespace longhaul {

struct CheckpointCopyOptions {
  FileSystem* from_files = &FileSystem::real();
  FileSystem* to_files = &FileSystem::real();
  std::string meta_suffix = "meta";
  double max_bytes_per_second = 0;  // when writing, and when reading back; 0: unlimited
  // Whether to write the files under their final names, the index last; for file systems where a rename copies.
  bool in_place = false;
  std::function<void(uint64_t bytes)> before_first_byte{};  // with the size of all files, once known
  std::function<void()> before_piece{};   // before each piece, written or read back; an exception ends the copy
  Pause pause{};                          // how it waits for the rate (RateLimit); an exception ends the copy
  std::function<void()> before_change{};  // the same, before existing files are renamed or removed
  Clock* clock = &Clock::real();
};

// Copies a committed checkpoint from prefix `from` to prefix `to`, in another, existing directory. A crash between any
// two steps, or an error, leaves the old checkpoint at `to` or the copy, intact, or neither (from 4 to 6):
//   1. All files of `from` are opened and the index is read: from then on, `from` may be deleted. NotFoundError: it no
//      longer exists. If `to` has the same index and all data files, nothing is done.
//   2. Data files, meta graph and index are written to the folder kIncoming next to `to`, and synced. While there is an
//      index in it, files of that name in the directory may be uncommitted (crash_leftovers.h).
//   3. The copy is read back there, and its checksums are compared: DataLossError. So damage from any source is not
//      copied, and it is noticed if `from` was replaced during the copy.
//   4. An existing checkpoint named `to` is removed. The directory is synced.
//   5. Data files and meta graph are renamed, and the directory is synced.
//   6. The index is renamed, and the directory is synced.
// In place, only the index is written to kIncoming. Then 4 is done first, 2 writes to `to`, and 5 and 6 are left out:
// the index, which commits the copy, is written last, and a copy that turns out to be damaged is removed. A crash may
// leave a truncated index; a restore skips it.
//
// Returns whether anything was copied. Leftovers of a failed copy are removed if possible.
bool copy_checkpoint(const std::string& from, const std::string& to, const CheckpointCopyOptions& options);

inline constexpr const char* kIncoming = ".incoming";

// Removes the leftovers of killed processes in the folder kIncoming of `directory`. No copy may be under way there.
// Returns the paths of what stays: folders, which somebody else put there, since a copy makes none.
std::vector<std::string> clear_incoming(FileSystem& files, const std::string& directory);

}  // namespace longhaul
