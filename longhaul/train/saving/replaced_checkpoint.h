#pragma once

#include <functional>
#include <string>

#include "longhaul/graph/graph.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/saving/save_history.h"

namespace longhaul {

// The time at which the checkpoint's index was written; 0: not known.
double commit_time(FileSystem& files, const std::string& prefix);

// Warns, once for each reason, that the checkpoint saved or restored last is being replaced under the same name: either
// its files on the disk have changed, or the variables have changed and the step has not. `only_random_states`: the
// saved values differ only in the states of random numbers, for example after an evaluation. No step was forgotten
// then, and the log says so without a warning.
void warn_of_replacement(FileSystem& files, const std::string& prefix, int64_t step, SaveHistory& saves,
                         const Graph& graph, const std::function<bool()>& only_random_states);

}  // namespace longhaul
