#pragma once

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// Compares the tensors that a graph restores with those in a checkpoint, before anything is changed. NotFoundError: the
// checkpoint lacks names. InvalidArgumentError: dtypes or shapes differ. The message says whether the model or its
// optimizer is a different one, as far as the names tell, and lists the mismatches and, if names are missing, the
// tensors that the checkpoint has instead: a line for each, up to twenty of either.
void check_restorable(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors);

// For a restore after which training continues: logs one warning if the checkpoint has values that the graph neither
// restores nor, from then on, saves. The library's own values, below "longhaul/", do not count.
void warn_of_left_out(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors);

}  // namespace longhaul
