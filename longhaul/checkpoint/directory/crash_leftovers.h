#pragma once

#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// Removes what dead processes and power cuts left in `directory` of checkpoints named `basename`-<step>, or just
// `basename`; of all that have a step, if it is empty. Only what its writer has announced, before it began, as not to
// be counted on:
//   1. Of what the state file or the retention file names as being deleted, whatever is not whole.
//   2. Data files and the meta graph of a save that did not come to its commit: its index is still there under a
//      temporary name (bundle_writer.h), or in the folder kIncoming (checkpoint_copy.h).
//   3. What lies aside (set_aside.h) without an index, beside the checkpoint that has one.
//   4. Temporary files: of checkpoints, of the state file and its neighbours, of the graph.
// Nothing else is touched. A whole checkpoint is the Saver's to delete, or nobody's. One that the state file or the
// retention file names as kept is none of these though its index is lost; it is damaged (train/recovery/fall_back.h).
//
// What this process itself is writing at the moment (writes_under_way.h) is none of these. No other process saves in
// the directory: the caller has it locked; each removal asks check_directory_owner() first.
void remove_crash_leftovers(FileSystem& files, const std::string& directory, const std::string& basename);

// The data files of such checkpoints that have no index and are no leftovers as above: of a copy that is under way,
// perhaps. A warning names them. Something may be saved in the directory meanwhile.
std::vector<std::string> data_without_index(FileSystem& files, const std::string& directory,
                                            const std::string& basename);

}  // namespace longhaul
