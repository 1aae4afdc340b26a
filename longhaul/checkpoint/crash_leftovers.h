#pragma once

#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// Removes what dead processes and power cuts left in `directory` of checkpoints named `basename`-<step>, or just
// `basename`; of all that have a step, if it is empty:
//   1. What the state file names as being deleted, where a part of it is gone.
//   2. Data files without an index, whose checkpoint was never committed, or was being deleted, and its meta graph.
//      What was set aside, or is damaged (corrupt_set.h), has an index of its own, and stays.
//   3. Meta graphs of later steps than the newest checkpoint's, without one of their own: a power cut may leave them
//      alone of a save, where file systems do not keep the order of renames.
//   4. Temporary files: of checkpoints, of the state file and its neighbours, of the graph.
// Nothing else is touched: a whole checkpoint is the Saver's to delete, or nobody's. Nothing is being saved in the
// directory, and the caller has it locked; each removal asks check_directory_owner() first.
void remove_crash_leftovers(FileSystem& files, const std::string& directory, const std::string& basename);

}  // namespace longhaul
