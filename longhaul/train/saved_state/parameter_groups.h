#pragma once

#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// InvalidArgumentError: an optimizer of libtorch's, bound by torch_training(), has another number of parameter groups
// than in the checkpoint; both numbers. Groups are known by what they are called there: "SGD/group_1/lr".
void check_parameter_groups(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors);

}  // namespace longhaul
