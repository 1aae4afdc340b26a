#pragma once

#include <string>

#include "longhaul/train/recovery/recovery_search.h"

namespace longhaul {

// Reports why nothing was restored from a directory that is not new, so that training never silently starts from
// scratch next to its own checkpoints.
//   DataLossError: there are checkpoints but none is intact. `damaged`: those that could not be read. `unknown`: data
//   files without an index that no state file or save names; perhaps the state file is lost as well.
//   UnimplementedError: some are of version V1.
//   Only a warning: the state file names checkpoints of which no file exists.
void explain_nothing_restored(const FallBackOptions& options, const std::vector<std::string>& damaged,
                              const std::vector<std::string>& without_index, const std::vector<std::string>& unknown);

}  // namespace longhaul
