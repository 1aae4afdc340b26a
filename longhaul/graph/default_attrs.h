#pragma once

#include "longhaul/proto/graph.pb.h"

namespace longhaul {

// Removes the attrs that have TensorFlow's default for that type of operation. Without them the operation is the same:
// whoever runs it takes an attr that is missing for one with the default.
void strip_default_attrs(proto::NodeDef* node);

}  // namespace longhaul
