#pragma once

#include "longhaul/proto/graph.pb.h"

namespace longhaul {

// Removes attrs with TensorFlow's default for that type of operation. The operation stays the same, since a missing
// attr means the default.
void strip_default_attrs(proto::NodeDef* node);

}  // namespace longhaul
