#pragma once

#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/session/session.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// The tensors to read from the checkpoint: all but optional ones that are missing. For these, an empty tensor is added
// to `feeds`, and one warning names them and the consequence. There is no warning for the library's own tensors, below
// "longhaul/", except for random numbers.
std::vector<SaverNodes::SavedTensor> tensors_to_read(const BundleReader& reader,
                                                     const std::vector<SaverNodes::SavedTensor>& tensors, Feeds* feeds);

}  // namespace longhaul
