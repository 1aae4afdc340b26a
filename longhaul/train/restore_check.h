#pragma once

#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/train/saver_graph.h"

namespace longhaul {

// Compares what a graph wants restored with what a checkpoint has, before anything is touched. NotFoundError: names are
// missing there. InvalidArgumentError: dtypes or shapes differ. The message lists everything that does not fit, and
// where names are missing those that the checkpoint has instead.
void check_restorable(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors);

}  // namespace longhaul
