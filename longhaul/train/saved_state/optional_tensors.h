#pragma once

#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/session/session.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// What of `tensors` is to be read from the checkpoint: all but those that may be missing and are. For these an empty
// tensor is added to `feeds`, and one warning says which they are and what it means; but not for what the library
// keeps for itself, below "longhaul/", random numbers apart.
std::vector<SaverNodes::SavedTensor> tensors_to_read(const BundleReader& reader,
                                                     const std::vector<SaverNodes::SavedTensor>& tensors, Feeds* feeds);

}  // namespace longhaul
