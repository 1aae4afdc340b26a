#pragma once

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// Compares what a graph wants restored with what a checkpoint has, before anything is touched. NotFoundError: names are
// missing there. InvalidArgumentError: dtypes or shapes differ. The message says whether the model or its
// optimizer is another one, as far as the names tell, and lists what does not fit and, where names are missing, what
// the checkpoint has instead: a line for each, twenty of either at most.
void check_restorable(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors);

}  // namespace longhaul
