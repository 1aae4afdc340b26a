#pragma once

#include "longhaul/graph/operation.h"
#include "longhaul/proto/graph.pb.h"

namespace longhaul {

// The attrs that TensorFlow's registrations (REGISTER_OP) require in addition to an operation's inputs, and that follow
// from these: T of an Assign is its variable's type, N of a StringJoin the number of its inputs. Operations here do not
// need them; TensorFlow does not read graphs without them.
void add_type_attrs(const Operation& op, proto::NodeDef* node);

void remove_type_attrs(proto::NodeDef* node);

}  // namespace longhaul
