#pragma once

#include <string>

#include "longhaul/io/file.h"
#include "longhaul/train/saving/save_history.h"

namespace longhaul {

// When the index of the checkpoint was written; 0: it is not known.
double commit_time(FileSystem& files, const std::string& prefix);

// Says, once for each reason, why the checkpoint that was saved or restored last is written anew under the same name:
// it is not as it was left on the disk, or else the variables have changed, and the step has not.
void warn_of_replacement(FileSystem& files, const std::string& prefix, int64_t step, SaveHistory& saves);

}  // namespace longhaul
