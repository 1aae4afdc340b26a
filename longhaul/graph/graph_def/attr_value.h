#pragma once

#include <string_view>

#include "longhaul/graph/operation.h"
#include "longhaul/proto/attr_value.pb.h"

namespace longhaul {

// An attr as it is in files: floating-point numbers have float precision, and a function of the program becomes a
// placeholder.
proto::AttrValue attr_to_proto(const Attr& attr);

// The reverse; attr_to_proto() then returns the same proto, byte for byte. A float becomes the shortest decimal for
// that float (0.1, not 0.10000000149). An empty list does not carry its element type, which follows from `name`
// (dtypes, shapes, keys), by TensorFlow's names. InvalidArgumentError: malformed. UnimplementedError: functions, lists
// of tensors, and others that none of our operations takes.
Attr attr_from_proto(std::string_view name, const proto::AttrValue& value);

}  // namespace longhaul
