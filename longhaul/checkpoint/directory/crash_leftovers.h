#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Removes from `directory` the leftovers of dead processes and power cuts: files of checkpoints named
// `basename`-<step>, or just `basename`; if that is empty, of all checkpoints with a step. Removes only files that
// their writer had marked as unreliable before it began:
//   1. Incomplete checkpoints that the state file or the retention file names as being deleted.
//   2. Data files and the meta graph of a save that was not committed: its index still has a temporary name
//      (bundle_writer.h), or is in the folder kIncoming (checkpoint_copy.h).
//   3. Files set aside (set_aside.h) without an index, if the checkpoint itself has one.
//   4. Temporary files: of checkpoints, of the state file and the files next to it, of the graph.
// Nothing else is touched. An intact checkpoint is never removed here; only the Saver may delete it. A checkpoint that
// the state file or the retention file names as kept is not a leftover even if its index is lost: it is damaged
// (train/recovery/fall_back.h).
//
// Files that this process is writing at the moment (writes_under_way.h) are not touched either. No other process may
// save in the directory, so the caller must have locked it. Each removal calls check_directory_owner() first.
void remove_crash_leftovers(FileSystem& files, const std::string& directory, const std::string& basename);

// The data files of such checkpoints that have no index and are not leftovers as above, perhaps because a copy is under
// way. A warning names them. Saves in the directory may run at the same time.
std::vector<std::string> data_without_index(FileSystem& files, const std::string& directory,
                                            const std::string& basename);

}  // namespace longhaul
