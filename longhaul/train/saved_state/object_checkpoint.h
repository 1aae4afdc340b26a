#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/session/session.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// tf.train.Checkpoint names tensors by their path through a program's objects
// ("model/layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"), and keeps a table of the objects in the tensor
// _CHECKPOINTABLE_OBJECT_GRAPH, with the names that the variables had in their graph.
using ObjectKeys = std::map<std::string, std::string>;  // from the name in the graph to the key in the checkpoint

// nullopt: it is an ordinary checkpoint, or has all the names. NotFoundError: some are not among its objects ("Could
// not find some variables"). DataLossError: the table is damaged.
std::optional<ObjectKeys> object_keys_for(const BundleReader& reader,
                                          const std::vector<SaverNodes::SavedTensor>& tensors);

// The tensors to feed instead of reading them with RestoreV2. The checks are those of check_restorable.
Feeds object_feeds(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors,
                   const ObjectKeys& keys);

}  // namespace longhaul
