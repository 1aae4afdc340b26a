#pragma once

#include <string>

#include "longhaul/train/recovery/recovery_search.h"

namespace longhaul {

// Says why nothing was restored though the directory is no fresh one, so that no training begins anew beside its own
// checkpoints without anybody's knowing.
//   DataLossError: there are checkpoints, and none is whole. `damaged`: what could not be read. `unknown`: data files
//   without an index, which the state file does not name, nor any save; the state file is lost as well, perhaps.
//   UnimplementedError: there are some of version V1.
//   A warning, and no error: the state file names checkpoints of which nothing is there.
void explain_nothing_restored(const FallBackOptions& options, const std::vector<std::string>& damaged,
                              const std::vector<std::string>& without_index, const std::vector<std::string>& unknown);

}  // namespace longhaul
