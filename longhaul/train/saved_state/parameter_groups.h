#pragma once

#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// InvalidArgumentError, with both numbers: a libtorch optimizer, bound by torch_training(), has a different number of
// parameter groups than in the checkpoint. Groups are recognised by names such as "SGD/group_1/lr".
void check_parameter_groups(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors);

}  // namespace longhaul
